// SPDX-License-Identifier: Apache-2.0
#include "nvjpeg.hpp"

#include <dlfcn.h>

#include <hpcai/base/error.hpp>

namespace hpcai::device::cuda::nvjpeg {

Functions open() {
    void* library = nullptr;
    std::string reason;
    for (const char* name : {"libnvjpeg.so.13", "libnvjpeg.so.12"}) {
        if (library != nullptr) break;
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library == nullptr && reason.empty()) reason = dlerror();
    }
    require(library != nullptr, ExitCode::usage, "{}", reason);
    const auto find = [library]<typename Function>(Function& function, const char* name) {
        function = reinterpret_cast<Function>(dlsym(library, name));
        require(function != nullptr, ExitCode::usage, "libnvjpeg.so lacks {}", name);
    };
    Functions functions{};
    find(functions.get_property, "nvjpegGetProperty");
    find(functions.create, "nvjpegCreateEx");
    find(functions.destroy, "nvjpegDestroy");
    find(functions.get_image_info, "nvjpegGetImageInfo");
    find(functions.create_state, "nvjpegJpegStateCreate");
    find(functions.destroy_state, "nvjpegJpegStateDestroy");
    find(functions.begin_batches, "nvjpegDecodeBatchedInitialize");
    find(functions.decode_batch, "nvjpegDecodeBatched");
    return functions;
}

}  // namespace hpcai::device::cuda::nvjpeg
