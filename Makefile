# SPDX-License-Identifier: MIT
# nodeprep: plain GNU make. The variables a packager or user may set:
#   CC CFLAGS CPPFLAGS LDFLAGS V=1 BUILD=dir PREFIX SYSCONFDIR LIBEXECDIR DESTDIR
#   UNITDIR UDEVDIR DOCDIR (systemd units, udev rules, documents)
#   BASHCOMPDIR ZSHCOMPDIR FISHCOMPDIR (where each shell looks for completions)

VERSION := 0.1.0
PREFIX ?= /usr
SYSCONFDIR ?= /etc
LIBEXECDIR ?= $(PREFIX)/libexec
UNITDIR ?= $(PREFIX)/lib/systemd/system
UDEVDIR ?= $(PREFIX)/lib/udev/rules.d
DOCDIR ?= $(PREFIX)/share/doc/nodeprep
# zsh of the RPM distributions looks in $(PREFIX)/share/zsh/site-functions
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/vendor-completions
FISHCOMPDIR ?= $(PREFIX)/share/fish/vendor_completions.d
DESTDIR ?=
BUILD ?= build
PKG_CONFIG ?= pkg-config
PYTHON ?= /usr/bin/python3

include packaging/packages.mk

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n'
MAKEFLAGS += --no-print-directory
endif

# ---- flags; the user's own come last ----
WARN := -Wall -Wextra -Wshadow -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wwrite-strings -Wundef -Wvla
HARDEN := -fstack-protector-strong -fstack-clash-protection -fPIE
# compilers for other machines refuse it
HARDEN += $(if $(filter x86_64-% i%86-%,$(shell $(CC) -dumpmachine 2>/dev/null)),-fcf-protection)
ifeq ($(FUZZ),1)
OPT := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer -DNP_TEST_HOOKS
LDOPT := -fsanitize=fuzzer,address,undefined -pie
else ifeq ($(SANITIZE),1)
OPT := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer \
	-DNP_TEST_HOOKS
LDOPT := -fsanitize=address,undefined -pie
else
OPT := -O2 -g -D_FORTIFY_SOURCE=2
LDOPT := -pie -Wl,-z,relro,-z,now,-z,noexecstack,--as-needed,-O1,--hash-style=gnu
# nearly every symbol is the C library's: searched first, it is found at once
LIBC_FIRST := -lc
endif
NP_CFLAGS := -std=gnu11 $(OPT) $(WARN) $(HARDEN) -MMD -MP
NP_CPPFLAGS := -D_GNU_SOURCE -iquote . -DNP_VERSION='"$(VERSION)"' \
	-DNP_LIBEXECDIR='"$(LIBEXECDIR)/nodeprep"' -DNP_SYSCONFDIR='"$(SYSCONFDIR)"'

# Headers and libraries of each room, so that a library cannot leak into another.
pc_cflags = $(shell $(PKG_CONFIG) --cflags $(1) 2>/dev/null)
pc_libs = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)
NL_CFLAGS = $(call pc_cflags,libnl-3.0)
NL_LIBS = $(call pc_libs,libnl-3.0)
UMAD_LIBS = $(call pc_libs,libibumad)
JANSSON_LIBS = $(call pc_libs,jansson)
INIH_LIBS = $(call pc_libs,inih)
UCX_CFLAGS = $(call pc_cflags,ucx)
UCX_LIBS = $(call pc_libs,ucx)
VERBS_LIBS = $(call pc_libs,libibverbs)
PMIX_CFLAGS = $(call pc_cflags,pmix)
PMIX_LIBS = $(call pc_libs,pmix)
CMOCKA_LIBS = $(call pc_libs,cmocka)

rooms := base netlink ibmad modules agent selftest
src = $(wildcard $(1)/*.c)
obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(call src,$(1)))

AGENT_OBJ := $(filter-out %/main.o,$(call obj,agent))
LIB_OBJ := $(call obj,base) $(call obj,netlink) $(call obj,ibmad) $(call obj,modules)
# what nodeprep itself needs of the lower rooms: it sends no MAD
AGENT_LIB_OBJ := $(filter-out $(BUILD)/obj/ibmad/smp.o,$(LIB_OBJ))
# ranks*.c are nodeprep-ranks; only ranks_pmix.c speaks PMIx
RANKS_OBJ := $(filter $(BUILD)/obj/selftest/ranks%,$(call obj,selftest))
SELFTEST_OBJ := $(filter-out %/main.o $(RANKS_OBJ),$(call obj,selftest))

PROGRAMS := $(BUILD)/nodeprep $(BUILD)/nodeprep-selftest $(BUILD)/nodeprep-ranks
COMPLETION := $(addprefix $(BUILD)/completion/,nodeprep.bash _nodeprep nodeprep.fish)

.DEFAULT_GOAL := all
.PHONY: all asan battery deps fakes fuzz fuzz-programs demo test test-unit test-cli lint lint-tidy bench install install-agent install-selftest dist deb rpm clean help FORCE

all: $(PROGRAMS) $(COMPLETION)

asan:
	$(Q)$(MAKE) SANITIZE=1 BUILD=$(BUILD)/asan all

$(BUILD)/nodeprep: $(BUILD)/obj/agent/main.o $(AGENT_OBJ) $(AGENT_LIB_OBJ)
	$(say) LINK $@
	$(Q)$(CC) $(LDOPT) $(LDFLAGS) -o $@ $^ $(LIBC_FIRST) $(NL_LIBS) $(JANSSON_LIBS) $(INIH_LIBS) -ldl

$(BUILD)/nodeprep-selftest: $(BUILD)/obj/selftest/main.o $(SELFTEST_OBJ) \
		$(call obj,base) $(call obj,ibmad) $(call obj,modules)
	$(say) LINK $@
	$(Q)$(CC) $(LDOPT) $(LDFLAGS) -o $@ $^ $(UCX_LIBS) $(VERBS_LIBS) $(UMAD_LIBS) $(JANSSON_LIBS) -ldl -lpthread -lm

# ---- completion: the frames of etc/completion, filled from the table of verbs and options ----
$(BUILD)/completion/generate: $(BUILD)/obj/etc/completion/generate.o $(AGENT_OBJ) $(AGENT_LIB_OBJ)
	$(say) LINK $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDOPT) $(LDFLAGS) -o $@ $^ $(LIBC_FIRST) $(NL_LIBS) $(JANSSON_LIBS) $(INIH_LIBS) -ldl

$(COMPLETION): $(BUILD)/completion/%: etc/completion/%.in $(BUILD)/completion/generate
	$(say) GEN $@
	$(Q)$(BUILD)/completion/generate <$< >$@.new && mv $@.new $@

$(BUILD)/nodeprep-ranks: $(RANKS_OBJ) $(SELFTEST_OBJ) \
		$(call obj,base) $(call obj,ibmad) $(call obj,modules)
	$(say) LINK $@
	$(Q)$(CC) $(LDOPT) $(LDFLAGS) -o $@ $^ $(PMIX_LIBS) $(UCX_LIBS) $(VERBS_LIBS) $(UMAD_LIBS) $(JANSSON_LIBS) -ldl -lpthread -lm

$(BUILD)/obj/netlink/%.o: NP_CPPFLAGS += $(NL_CFLAGS)
$(BUILD)/obj/selftest/ranks_pmix.o: NP_CPPFLAGS += $(PMIX_CFLAGS)
$(BUILD)/obj/selftest/%.o: NP_CPPFLAGS += $(UCX_CFLAGS)

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(NP_CPPFLAGS) $(CPPFLAGS) $(NP_CFLAGS) $(CFLAGS) -c -o $@ $<

# Other flags, other objects: rebuild when they change.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(CC) $(NP_CPPFLAGS) $(CPPFLAGS) $(NP_CFLAGS) $(CFLAGS) $(LDFLAGS))' >$@.new
	@if cmp -s $@.new $@; then rm -f $@.new; else mv $@.new $@; fi
FORCE:

# ---- unit tests: one program a file, sanitizers on ----
UNIT := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))
UNIT_TOOLS := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/render_*.c))
TEST_OBJ = $(AGENT_OBJ) $(LIB_OBJ)

$(BUILD)/unit/test_selftest_%: $(BUILD)/obj/tests/unit/test_selftest_%.o $(SELFTEST_OBJ) \
		$(call obj,base) $(call obj,ibmad) $(call obj,modules)
	$(say) LINK $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDOPT) $(LDFLAGS) -o $@ $^ $(UCX_LIBS) $(VERBS_LIBS) $(UMAD_LIBS) $(JANSSON_LIBS) $(CMOCKA_LIBS) -ldl -lpthread -lm

$(BUILD)/unit/test_ranks_%: $(BUILD)/obj/tests/unit/test_ranks_%.o $(filter-out %/ranks_main.o,$(RANKS_OBJ)) \
		$(SELFTEST_OBJ) $(call obj,base) $(call obj,ibmad) $(call obj,modules)
	$(say) LINK $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDOPT) $(LDFLAGS) -o $@ $^ $(PMIX_LIBS) $(UCX_LIBS) $(VERBS_LIBS) $(UMAD_LIBS) $(JANSSON_LIBS) $(CMOCKA_LIBS) -ldl -lpthread -lm

$(BUILD)/unit/%: $(BUILD)/obj/tests/unit/%.o $(AGENT_OBJ) $(LIB_OBJ)
	$(say) LINK $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDOPT) $(LDFLAGS) -o $@ $^ $(NL_LIBS) $(UMAD_LIBS) $(JANSSON_LIBS) $(INIH_LIBS) $(CMOCKA_LIBS) -ldl -lpthread

$(BUILD)/obj/tests/unit/%.o: NP_CPPFLAGS += $(NL_CFLAGS) $(UCX_CFLAGS)
.SECONDARY:

# ---- fakes of NVIDIA's libraries and of UCX's version, and a stand-in of libgdrapi; never installed ----
FAKES := $(addprefix $(BUILD)/,fake/libcuda.so.1 fake/libnccl.so.2 fake/libnvidia-ml.so.1 fake/ucx_version.so fake/cpus.so fake/gdr/libgdrapi.so.2 standin/libgdrapi.so.2)
fake_cc = $(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -Wno-missing-prototypes -MMD -MP -fPIC -fvisibility=hidden \
	-iquote tests/fake -shared -Wl,-soname,$(@F) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -MF $@.d -o $@ $< \
	-ldl -lpthread
$(BUILD)/fake/libcuda.so.1: tests/fake/cuda.c
$(BUILD)/fake/libnccl.so.2: tests/fake/nccl.c
$(BUILD)/fake/libnvidia-ml.so.1: tests/fake/nvml.c
$(BUILD)/fake/ucx_version.so: tests/fake/ucx_version.c
$(BUILD)/fake/cpus.so: tests/fake/cpus.c
$(BUILD)/fake/gdr/libgdrapi.so.2: tests/fake/gdrapi.c
$(BUILD)/standin/libgdrapi.so.2: tests/standin/gdrapi.c
$(FAKES):
	$(say) FAKE $@
	@mkdir -p $(@D)
	$(Q)$(fake_cc)

# who lets system calls fail, for tests/battery
$(BUILD)/fault: tests/battery/fault.c
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $<

fakes: $(FAKES) $(BUILD)/fault

unit-programs: fakes $(addprefix $(BUILD)/unit/,$(UNIT) $(UNIT_TOOLS))

# ---- fuzz targets: libFuzzer with clang; else, with SANITIZE=1, programs that replay files ----
FUZZ_SECONDS ?= 60
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_MAIN := $(if $(filter 1,$(FUZZ)),,$(BUILD)/obj/tests/fuzz/replay.o)

$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(FUZZ_MAIN) $(AGENT_OBJ) $(LIB_OBJ)
	$(say) LINK $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDOPT) $(LDFLAGS) -o $@ $^ $(NL_LIBS) $(UMAD_LIBS) $(JANSSON_LIBS) $(INIH_LIBS) $(CMOCKA_LIBS) -ldl -lpthread

fuzz-programs: $(addprefix $(BUILD)/fuzz/,$(FUZZERS))

# What was found lies in build/clang/found-*; the corpus is kept between runs.
fuzz:
	$(Q)packaging/install-deps $(DEPS_BUILD) $(DEPS_FUZZ)
	$(Q)$(MAKE) FUZZ=1 CC=clang BUILD=$(BUILD)/clang fuzz-programs
	$(Q)for f in $(FUZZERS); do \
		echo "  FUZZ    $$f, $$(($(FUZZ_SECONDS) / $(words $(FUZZERS)))) s"; \
		mkdir -p $(BUILD)/clang/corpus/$$f tests/fuzz/seeds/$$f || exit 1; \
		$(BUILD)/clang/fuzz/$$f -max_total_time=$$(($(FUZZ_SECONDS) / $(words $(FUZZERS)))) \
			-timeout=10 -max_len=4096 -verbosity=0 -print_final_stats=1 \
			-artifact_prefix=$(BUILD)/clang/found-$$f- \
			$(BUILD)/clang/corpus/$$f tests/fuzz/seeds/$$f >$(BUILD)/clang/$$f.log 2>&1 || \
			{ tail -n 60 $(BUILD)/clang/$$f.log; exit 1; }; \
		grep -E 'executed_units|new_units' $(BUILD)/clang/$$f.log; \
	done

# ---- what a new user runs ----
deps:
	$(Q)packaging/install-deps $(DEPS)

demo: deps
	$(Q)$(MAKE) all
	$(Q)tests/demo $(BUILD)

test: deps
	$(Q)packaging/install-deps $(DEPS_PACKAGES)
	$(Q)packaging/unpack-debs $(BUILD)/opensm $(DEPS_UNPACK)
	$(Q)packaging/unpack-debs $(BUILD)/modules $(DEPS_UNPACK_MODULES)
	$(Q)packaging/unpack-debs $(BUILD)/cloud-init $(DEPS_UNPACK_CLOUD_INIT)
	$(Q)packaging/unpack-debs $(BUILD)/slurm $(DEPS_UNPACK_SLURM)
	$(Q)$(MAKE) all asan
	$(Q)$(MAKE) SANITIZE=1 BUILD=$(BUILD)/asan unit-programs
	$(Q)tests/run $(BUILD)

# every fault of the battery takes hours: BATTERY_ROUNDS=all
BATTERY_ROUNDS ?= 200
battery: deps
	$(Q)$(MAKE) all asan
	$(Q)$(MAKE) SANITIZE=1 BUILD=$(BUILD)/asan fakes
	$(Q)tests/battery/battery $(BUILD) --rounds $(BATTERY_ROUNDS) $(if $(SEED),--seed $(SEED))

lint: deps
	$(Q)BUILD=$(BUILD) tests/lint/run

# One stamp a file: only what changed is looked at again. Libraries' headers are not judged.
TIDY := $(patsubst %.c,$(BUILD)/tidy/%.ok,$(foreach room,$(rooms) tests/unit,$(call src,$(room))))
lint-tidy: $(TIDY)
$(BUILD)/tidy/netlink/%.ok: NP_CPPFLAGS += $(NL_CFLAGS)
$(BUILD)/tidy/selftest/%.ok: NP_CPPFLAGS += $(UCX_CFLAGS)
$(BUILD)/tidy/selftest/ranks_pmix.ok: NP_CPPFLAGS += $(PMIX_CFLAGS)
$(BUILD)/tidy/tests/%.ok: NP_CPPFLAGS += $(NL_CFLAGS) $(UCX_CFLAGS)
$(filter $(BUILD)/tidy/tests/%,$(TIDY)): tests/unit/.clang-tidy
$(BUILD)/tidy/%.ok: %.c .clang-tidy
	@mkdir -p $(@D)
	@$(CC) $(NP_CPPFLAGS) -DNP_TEST_HOOKS $(CPPFLAGS) -std=gnu11 -MM -MP -MT $@ -MF $(@:.ok=.d) $<
	$(Q)found=$$(clang-tidy --quiet $< -- $(patsubst -I%,-isystem%,$(NP_CPPFLAGS)) -DNP_TEST_HOOKS \
		$(CPPFLAGS) -std=gnu11 $(WARN) 2>&1) || \
		{ echo "$$found" | sed -n 's,^$(CURDIR)/,,; s/,-warnings-as-errors//; / error: /p'; exit 1; }
	@touch $@

# the engine of the UCX rungs between two processes, beside ucx_perftest
$(BUILD)/obj/tests/bench/%.o: NP_CPPFLAGS += $(UCX_CFLAGS)
$(BUILD)/ucp_pair: $(BUILD)/obj/tests/bench/ucp_pair.o $(SELFTEST_OBJ) \
		$(call obj,base) $(call obj,ibmad) $(call obj,modules)
	$(say) LINK $@
	$(Q)$(CC) $(LDOPT) $(LDFLAGS) -o $@ $^ $(UCX_LIBS) $(VERBS_LIBS) $(UMAD_LIBS) $(JANSSON_LIBS) -ldl -lpthread -lm

bench: deps
	$(Q)$(MAKE) all $(BUILD)/ucp_pair
	$(Q)$(PYTHON) tests/bench/bench $(BUILD)

# ---- what is installed: by hand, and in the two packages of the same names ----
# none is enabled by this
UNITS := $(wildcard etc/systemd/*.service etc/systemd/*.timer etc/systemd/*.path)
UDEV_RULES := $(wildcard etc/udev/*.rules)
MAN_SELFTEST := docs/man/nodeprep-ranks.1
MAN_AGENT := docs/man/nodeprep.8 docs/man/nodeprep.conf.5 docs/man/nodeprep-codes.7
DOCS := README.md NEWS SECURITY.md docs/from-the-guide.md docs/deploy.md docs/is-my-cluster-ready.md

install_man = for page in $(1); do \
		install -D -m 0644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page\#\#*.}/$${page\#\#*/} || exit 1; \
	done

install: install-agent install-selftest

install-agent: all
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(LIBEXECDIR)/nodeprep $(DESTDIR)$(UNITDIR) \
		$(DESTDIR)$(PREFIX)/share/nodeprep $(DESTDIR)$(DOCDIR)/examples $(DESTDIR)$(SYSCONFDIR)/nodeprep/conf.d
	install -m 0755 $(BUILD)/nodeprep $(DESTDIR)$(PREFIX)/sbin/nodeprep
	install -m 0755 packaging/dask/nodeprep-dask $(DESTDIR)$(LIBEXECDIR)/nodeprep/
	install -D -m 0755 packaging/dask/cluster-test $(DESTDIR)$(LIBEXECDIR)/nodeprep/dask/cluster-test
	install -m 0644 packaging/dask/cluster_worker.py $(DESTDIR)$(LIBEXECDIR)/nodeprep/dask/cluster_worker.py
	install -D -m 0755 packaging/slurm/health-check $(DESTDIR)$(LIBEXECDIR)/nodeprep/slurm/health-check
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/share/nodeprep/slurm packaging/slurm/ranks.sbatch packaging/slurm/check.sbatch
	for script in post-install unattended; do \
		sed 's,/usr/libexec/,$(LIBEXECDIR)/,;s,=/usr/sbin/,=$(PREFIX)/sbin/,' packaging/hook/$$script \
			>$(DESTDIR)$(LIBEXECDIR)/nodeprep/$$script && \
		chmod 0755 $(DESTDIR)$(LIBEXECDIR)/nodeprep/$$script || exit 1; \
	done
	for unit in $(UNITS); do \
		sed 's,/usr/libexec/,$(LIBEXECDIR)/,;s,=/usr/sbin/,=$(PREFIX)/sbin/,;s,^ConditionPathExists=/etc/,ConditionPathExists=$(SYSCONFDIR)/,' $$unit \
			>$(DESTDIR)$(UNITDIR)/$${unit##*/} && \
		chmod 0644 $(DESTDIR)$(UNITDIR)/$${unit##*/} || exit 1; \
	done
	for rule in $(UDEV_RULES); do install -D -m 0644 $$rule $(DESTDIR)$(UDEVDIR)/$${rule##*/} || exit 1; done
	$(call install_man,$(MAN_AGENT))
	install -D -m 0644 $(BUILD)/completion/nodeprep.bash $(DESTDIR)$(BASHCOMPDIR)/nodeprep
	install -D -m 0644 $(BUILD)/completion/_nodeprep $(DESTDIR)$(ZSHCOMPDIR)/_nodeprep
	install -D -m 0644 $(BUILD)/completion/nodeprep.fish $(DESTDIR)$(FISHCOMPDIR)/nodeprep.fish
	install -m 0644 docs/nodeprep.schema.json $(DESTDIR)$(PREFIX)/share/nodeprep/
	install -m 0644 $(DOCS) $(DESTDIR)$(DOCDIR)/
	install -m 0644 etc/nodeprep.conf $(DESTDIR)$(DOCDIR)/examples/nodeprep.conf
	install -d $(DESTDIR)$(DOCDIR)/examples/cloud-init
	install -m 0644 packaging/cloud-init/* $(DESTDIR)$(DOCDIR)/examples/cloud-init/
	test -e $(DESTDIR)$(SYSCONFDIR)/nodeprep/nodeprep.conf || \
		install -m 0644 etc/nodeprep.conf $(DESTDIR)$(SYSCONFDIR)/nodeprep/nodeprep.conf

# all that links UCX and verbs
install-selftest: all
	install -d $(DESTDIR)$(LIBEXECDIR)/nodeprep $(DESTDIR)$(PREFIX)/bin
	install -m 0755 $(BUILD)/nodeprep-selftest $(DESTDIR)$(LIBEXECDIR)/nodeprep/nodeprep-selftest
	install -m 0755 $(BUILD)/nodeprep-ranks $(DESTDIR)$(PREFIX)/bin/nodeprep-ranks
	$(call install_man,$(MAN_SELFTEST))

# ---- packages, in $(BUILD)/packages; the same bytes each time ----
dist:
	$(Q)packaging/make-dist $(BUILD) $(VERSION)

deb:
	$(Q)packaging/install-deps $(DEPS_BUILD) $(DEPS_DEB)
	$(Q)packaging/make-deb $(BUILD) $(VERSION)

rpm:
	$(Q)packaging/install-deps $(DEPS_BUILD) $(DEPS_RPM)
	$(Q)packaging/make-rpm $(BUILD) $(VERSION)

clean:
	rm -rf $(BUILD)

include tests/vm/vm.mk

help:
	@sed -n 's/^## //p' Makefile tests/vm/vm.mk
## make          build/nodeprep, build/nodeprep-selftest and build/nodeprep-ranks
## make deps     install the Debian packages that building and testing need
## make demo     set everything up and show the main job on a simulated node
## make test     set everything up and run every test that needs no hardware
## make battery  BATTERY_ROUNDS=200|all SEED=: SIGKILL, full and broken disks, two runs at once
## make fuzz     FUZZ_SECONDS=60: the parsers and the plan with libFuzzer
## make lint     clang-format, clang-tidy, cppcheck, shellcheck, codespell, man pages, layering
## make bench    ratios against the tools of the guide; writes build/bench.json
## make asan     the programs with AddressSanitizer and UBSan, in build/asan
## make install  DESTDIR= PREFIX= SYSCONFDIR=
## make deb      Debian packages, in build/packages
## make rpm      RPM packages, in build/packages

-include $(shell find $(BUILD)/obj $(BUILD)/tidy $(BUILD)/fake $(BUILD)/standin -name '*.d' 2>/dev/null)
