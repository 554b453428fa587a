# SPDX-License-Identifier: MIT
# The test VM: Debian's own kernel under QEMU, with a software InfiniBand HCA. Included by
# the Makefile; needs $(BUILD), `deps`, `all`. tests/vm/README.md explains.
VM_JOBS ?= 2
VM := $(BUILD)/vm
VM_SOFTIB := $(wildcard tests/vm/softib/*)
VM_MODULES := $(wildcard tests/vm/broken/* tests/vm/gdrdrv/*)

.PHONY: vm-deps vm-build vm-images vm-test demo-vm

vm-deps:
	$(Q)packaging/install-deps $(DEPS_BUILD) $(DEPS_VM)

# Each step leaves its file alone when it is up to date already.
$(VM)/payload: tests/vm/payload tests/vm/packages FORCE | vm-deps
	$(Q)tests/vm/payload $(VM)

$(VM)/softib/softib.ko: $(VM)/payload $(VM_SOFTIB)
	$(say) SOFTIB $@
	$(Q)nice -n 5 tests/vm/softib/build $(VM)/softib $$(cat $(VM)/kernel)

$(VM)/modules/done: $(VM)/payload $(VM_MODULES)
	$(say) MODULES $(@D)
	$(Q)nice -n 5 tests/vm/broken/build $(@D) $$(cat $(VM)/kernel)

$(VM)/base.cpio: $(VM)/payload $(VM)/softib/softib.ko $(VM)/modules/done tests/vm/mkroot tests/vm/init
	$(say) ROOT $@
	$(Q)nice -n 5 tests/vm/mkroot $(VM)

$(VM)/disk.ext4: $(VM)/base.cpio tests/vm/mkdisk $(wildcard tests/vm/boot/*)
	$(say) DISK $@
	$(Q)nice -n 5 tests/vm/mkdisk $(VM)

# The programs come after the packages that building them needs.
vm-build: vm-deps
	$(Q)$(MAKE) all fakes
	$(Q)$(MAKE) vm-images
vm-images: $(VM)/base.cpio $(VM)/disk.ext4
	@:

vm-test: vm-build
	$(Q)nice -n 5 tests/vm/run --build $(BUILD) --jobs $(VM_JOBS) $(SCENARIOS)

demo-vm: vm-build
	$(Q)nice -n 5 tests/vm/run --build $(BUILD) --demo

## make vm-test  every scenario on a real kernel in QEMU; SCENARIOS="two-nodes modes" for some, VM_JOBS=1 for one VM at a time
## make demo-vm  the main job on a real kernel with real InfiniBand interfaces, in QEMU
