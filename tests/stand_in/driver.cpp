// SPDX-License-Identifier: Apache-2.0
/// Stands in for NVIDIA's driver, which the program only looks for; the engine next to it has a
/// runtime of its own.
extern "C" int hpcai_stands_in_for_libcuda() {
    return 0;
}
