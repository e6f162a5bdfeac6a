# SPDX-License-Identifier: Apache-2.0
"""Builds the committed state of the clone that contains this file:

    spack repo add scripts/packaging/spack
    spack install hpcai500            # or, with uncommitted changes: spack dev-build hpcai500@main

Tested with Spack 0.21: audit, and spec of hpcai500 +tests. Not tested: the build, and +cuda, because
Spack 0.21 has no CUDA 13.
"""
import os

from spack.package import *


class Hpcai500(CMakePackage, CudaPackage):
    """HPC AI500 V3.0: groups of MPI ranks train ResNet-50 or Faster R-CNN, vote as an ensemble, and
    are scored in FLOPS and valid FLOPS."""

    homepage = "https://www.benchcouncil.org/aibench/hpcai500/"
    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 5))

    license("Apache-2.0")

    version("main", branch="main")

    variant("tests", default=False, description="Build the tests")

    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3:")
    depends_on("onednn@2.6:3 cpu_runtime=omp")
    depends_on("hwloc@2:")
    depends_on("jpeg")
    depends_on("libpng@1.6:")
    depends_on("hdf5@1.10:1")
    depends_on("zlib")
    depends_on("pugixml@1.12:")
    depends_on("openssl@1.1:")
    depends_on("yaml-cpp@0.7:")
    depends_on("fmt@9:9")
    depends_on("spdlog@1.10:1.11 +fmt_external")  # later versions need fmt 10
    depends_on("nlohmann-json@3.11:")
    depends_on("cli11@2.1:")
    depends_on("googletest@1.12: +gmock", when="+tests")
    depends_on("python@3.9:", when="+tests", type="build")

    with when("+cuda"):
        depends_on("cuda@13:")
        depends_on("cudnn@9:")
        depends_on("nccl@2:")
        depends_on("py-pip", type="build")  # fetches the headers of cudnn_frontend
        conflicts("cuda_arch=none", msg="choose the GPU, such as cuda_arch=90")

    conflicts("%gcc@:11", msg="C++20 as of g++ 12")

    generator("ninja")

    @run_before("cmake", when="+cuda")
    def fetch_cudnn_frontend(self):
        bash = which("bash")
        bash("scripts/fetch_cudnn_frontend.sh")

    def cmake_args(self):
        arguments = [
            self.define_from_variant("HPCAI500_TESTS", "tests"),
            self.define_from_variant("HPCAI500_CUDA", "cuda"),
            self.define("HPCAI500_WERROR", False),
        ]
        if self.spec.satisfies("+cuda"):
            architectures = [f"{name}-real" for name in self.spec.variants["cuda_arch"].value]
            arguments.append(self.define("CMAKE_CUDA_ARCHITECTURES", architectures))
        return arguments

    def setup_run_environment(self, env):
        env.set("HPCAI500_CONFIGS", self.prefix.share.hpcai500.configs)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def print_version(self):
        Executable(self.prefix.bin.hpcai500)("--version")
