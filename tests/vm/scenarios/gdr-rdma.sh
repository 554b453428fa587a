# shellcheck shell=bash disable=SC2016,SC2034 # jq has its own $; AS is for lib.sh
# SPDX-License-Identifier: MIT
# The rung gdr_rdma on a software HCA and a FAKE GPU, whose memory is the host's (tests/fake):
# that it registers, moves, verifies and judges. Nothing is proven of GPUDirect RDMA itself.
# boot: rungs
# seconds: 120
# hw: no, the GPU is a fake

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"

# on_fake CODE FAKE ARGUMENTS...: FAKE is what the fake GPU plays
on_fake() {
	local want=$1
	AS=(env LD_LIBRARY_PATH=/vm/fake "FAKE_CUDA=$2")
	shift 2
	rung "$want" gdr_rdma "$@"
}

softib_node mlx5_0 mlx5_1

say "the memory of a GPU by its address; why not by dma-buf"
on_fake 0 gpus=2 --device mlx5_0:1 --gpu GPU1
holds '.selftest[0] | .status == "ok" and .device == "mlx5_0:1" and (.transport | contains("by nvidia_peermem"))'
holds '.selftest[0] | .message | contains("GPU1 (0000:18:00.0)") and contains("registered by nvidia_peermem") and contains("cannot be registered by dma-buf")'
holds '.selftest[0] | [.sizes[].size_bytes] == [8, 4096, 65536, 1048576, 8388608] and all(.sizes[]; .latency_us > 0 and .bandwidth_MBps > 0)'

say "all ports"
on_fake 0 "" --quick
holds '[.selftest[].device] == ["mlx5_0:1", "mlx5_1:1"]'

say "a wrong bit"
on_fake 1 corrupt=3 --device mlx5_0:1
holds '.selftest[0] | .code == "selftest.data_corrupt" and (.message | contains("registered by nvidia_peermem"))'

say "a GPU whose memory no copy reaches"
on_fake 1 fail=cuMemcpyHtoD_v2:999 --device mlx5_0:1
holds '.selftest[0].code == "cuda.failed" or .selftest[0].code == "selftest.gdr_rdma.no_way"'
on_fake 1 "fail=cuMemAlloc_v2:2" --device mlx5_0:1
holds '.selftest[0].code == "cuda.out_of_memory"'

say "no GPU"
on_fake 1 init=100 --device mlx5_0:1
holds '.selftest[0] | .code == "selftest.no_gpu" and .status == "skip"'
