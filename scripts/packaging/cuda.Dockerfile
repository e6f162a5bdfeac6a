# SPDX-License-Identifier: Apache-2.0
# Base images for Dockerfile and hpcai500.def with CUDA 13, cuDNN 9 and NCCL, from NVIDIA's packages
# for Debian 12:
#   docker build -f scripts/packaging/cuda.Dockerfile --target build -t cuda-build .
#   docker build -f scripts/packaging/cuda.Dockerfile --target run -t cuda-run .
#   docker build -f scripts/packaging/Dockerfile --build-arg BUILD_BASE=cuda-build \
#       --build-arg RUN_BASE=cuda-run -t hpcai500-cuda .
#   docker run --rm --gpus all --ipc host -v "$PWD/results:/bench/results" hpcai500-cuda ...
# Not tested.
FROM docker.io/library/debian:12-slim AS cuda
RUN apt-get update -q && apt-get install -q -y --no-install-recommends ca-certificates wget \
    && wget -q https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/cuda-keyring_1.1-1_all.deb \
    && dpkg -i cuda-keyring_1.1-1_all.deb && rm -rf cuda-keyring_1.1-1_all.deb /var/lib/apt/lists/*

FROM cuda AS build
RUN apt-get update -q && apt-get install -q -y --no-install-recommends python3-pip \
    cuda-nvcc-13-0 cuda-cudart-dev-13-0 cuda-nvrtc-dev-13-0 libcublas-dev-13-0 \
    libcudnn9-dev-cuda-13 libnccl-dev && rm -rf /var/lib/apt/lists/*
ENV PATH=/usr/local/cuda/bin:$PATH

FROM cuda AS run
RUN apt-get update -q && apt-get install -q -y --no-install-recommends cuda-cudart-13-0 \
    cuda-nvrtc-13-0 libcublas-13-0 libnvjpeg-13-0 libcudnn9-cuda-13 libnccl2 && rm -rf /var/lib/apt/lists/*
ENV LD_LIBRARY_PATH=/usr/local/cuda/lib64
