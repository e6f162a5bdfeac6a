// SPDX-License-Identifier: Apache-2.0
/// Stands in for NVIDIA's driver, which the program only looks for. The engine next to this library
/// has a separate runtime.
extern "C" int hpcai_stands_in_for_libcuda() {
    return 0;
}
