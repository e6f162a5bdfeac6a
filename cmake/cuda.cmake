# SPDX-License-Identifier: Apache-2.0
# The CUDA engine, libhpcai_cuda.so. The program loads it at run time if there is a driver, so it also starts
# without CUDA. HPCAI_CUDA_FOUND is true if the engine is built.
set(HPCAI500_CUDA AUTO CACHE STRING "Build the CUDA engine: ON, OFF, or AUTO (if its dependencies are found)")
set_property(CACHE HPCAI500_CUDA PROPERTY STRINGS AUTO ON OFF)

set(HPCAI_CUDA_FOUND OFF)
if(NOT HPCAI500_CUDA)
  message(STATUS "CUDA engine: off (HPCAI500_CUDA)")
  return()
endif()
if(HPCAI500_SANITIZE AND HPCAI500_CUDA STREQUAL AUTO)
  message(STATUS "CUDA engine: off in sanitized builds, whose tests run its kernels on the CPU")
  return()
endif()

find_package(CUDAToolkit QUIET)
find_path(CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
find_path(NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
find_path(CUDNN_FRONTEND_INCLUDE cudnn_frontend.h
  HINTS ${PROJECT_SOURCE_DIR}/build/third_party/cudnn_frontend/include)

set(missing)
if(NOT CUDAToolkit_NVCC_EXECUTABLE)
  list(APPEND missing "nvcc")
endif()
if(NOT CUDNN_INCLUDE OR NOT CUDNN_LIBRARY)
  list(APPEND missing "cuDNN")
endif()
if(NOT NCCL_INCLUDE OR NOT NCCL_LIBRARY)
  list(APPEND missing "NCCL")
endif()
if(NOT CUDNN_FRONTEND_INCLUDE)
  list(APPEND missing "cudnn_frontend.h (scripts/fetch_cudnn_frontend.sh)")
endif()
if(missing)
  list(JOIN missing ", " missing)
  if(NOT HPCAI500_CUDA STREQUAL AUTO)
    message(FATAL_ERROR "HPCAI500_CUDA is ${HPCAI500_CUDA}, but these are missing: ${missing}")
  endif()
  message(STATUS "CUDA engine: not built, missing: ${missing}")
  return()
endif()

if(NOT DEFINED CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90-real)
endif()
enable_language(CUDA)
foreach(header ${CUDNN_INCLUDE}/cudnn_version.h ${NCCL_INCLUDE}/nccl.h)
  file(STRINGS ${header} numbers REGEX "^#define (CUDNN|NCCL)_(MAJOR|MINOR|PATCH|PATCHLEVEL) +[0-9]+")
  list(TRANSFORM numbers REPLACE "^[^0-9]*([0-9]+).*" "\\1")
  list(JOIN numbers . version)
  get_filename_component(library ${header} NAME_WE)
  set(${library}_VERSION ${version})
endforeach()
# CMake 3.25 lacks these options of nvcc.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
set(HPCAI_CUDA_FOUND ON)
message(STATUS "CUDA engine: toolkit ${CUDAToolkit_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")

file(GLOB cuda_sources CONFIGURE_DEPENDS src/device/cuda/*.cpp src/comm/nccl/*.cpp)
file(GLOB cuda_kernels CONFIGURE_DEPENDS kernels/*.cu)
# These files reuse names. From CMake 3.31 on, a unity build would combine them.
set_source_files_properties(${cuda_kernels} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# The templates of cudnn_frontend make this the slowest file to build. A run calls it only once for each plan, so -O1
# suffices, and does not store plans as JSON.
set_source_files_properties(src/device/cuda/cudnn_graphs.cpp PROPERTIES
  COMPILE_OPTIONS -O1 COMPILE_DEFINITIONS CUDNN_FRONTEND_SKIP_JSON_LIB)
add_library(hpcai_cuda SHARED ${cuda_sources} ${cuda_kernels})
target_link_libraries(hpcai_cuda
  PUBLIC hpcai_comm
  PRIVATE CUDA::cublasLt CUDA::nvrtc ${CUDNN_LIBRARY} ${NCCL_LIBRARY} nlohmann_json::nlohmann_json
  PUBLIC CUDA::cudart)
target_include_directories(hpcai_cuda PUBLIC ${PROJECT_SOURCE_DIR})
target_include_directories(hpcai_cuda PRIVATE ${PROJECT_SOURCE_DIR}/kernels)
target_include_directories(hpcai_cuda SYSTEM PUBLIC ${CUDNN_INCLUDE} ${NCCL_INCLUDE}
  PRIVATE ${CUDNN_FRONTEND_INCLUDE})
# Register spills are errors. Line numbers are for compute-sanitizer and ncu.
target_compile_options(hpcai_cuda PRIVATE
  $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo;-Xptxas=-warn-spills,-warn-lmem-usage,-Werror>)
target_link_options(hpcai_cuda PRIVATE -Wl,--no-undefined)
set_target_properties(hpcai_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
install(TARGETS hpcai_cuda LIBRARY DESTINATION lib)
