#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/bundle.sh [--build DIR] [--output DIR] [--without-tests]
# Creates a relocatable folder for other Linux machines of the same processor family: the program, the test
# programs and scripts of the GPU smoke run, Open MPI and every library they need, except glibc and CUDA (with cuDNN
# and NCCL), which the target must have. The smoke run comes with nvJPEG if pip can download it.
#   --build DIR      the build folder (default: build/release)
#   --output DIR     the folder to create (default: build/bundle), which is also packed as DIR.tar.gz
#   --without-tests  omits the smoke run; only hpcai500 must be built
# At the end, runs two ranks from the finished folder in an empty environment. Needs patchelf.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/bundle.sh "$@"

limit_mib=50 # of the packed file, which is copied to the target
build=build/release
output=build/bundle
programs=(hpcai500 device_test graph_test parity_test)
while (($#)); do
    case $1 in
        --build) build=${2:?--build needs a folder} && shift 2 ;;
        --output) output=${2:?--output needs a folder} && shift 2 ;;
        --without-tests) programs=(hpcai500) && shift ;;
        *)
            echo "bundle.sh: unknown option '$1'; the options are --build, --output and --without-tests" >&2
            exit 2
            ;;
    esac
done

fail() {
    echo "bundle.sh: $*" >&2
    exit 1
}

# The target provides these libraries: glibc must match its loader, and CUDA its driver.
glibc='^(linux-vdso|ld-linux[^.]*|libc|libm|libdl|librt|libpthread|libutil|libresolv|libanl|libmvec)\.so'
cuda='^lib(cuda|cudart|cublas|cublasLt|cudnn[_a-z]*|nccl|nvrtc[-a-z]*|nvJitLink|nvidia[-a-z]*)\.so'
# Not included: fabrics and OpenSHMEM, which need some thirty libraries, and MPI-IO, which is unused.
excluded_plugins='_(ofi|ucx|psm2?|openib|monitoring|netlink)\.so$|/mca_(atomic|memheap|scoll|spml|sshmem)_|/mca_(fbtl|fcoll|fs|io|sharedfp)_'

for program in "${programs[@]}"; do
    [[ -x $build/$program ]] || fail "no $build/$program; scripts/build.sh builds it"
done
! grep -qsE '^HPCAI500_SANITIZE:[A-Z]*=(ON|THREAD)' "$build/CMakeCache.txt" || fail "$build is a sanitizer build"
[[ ! -e $output || -f $output/bin/cuda_library_path ]] || fail "$output exists and is not a bundle"
command -v patchelf >/dev/null || fail "no patchelf; scripts/install_dependencies.sh installs it"
command -v ompi_info >/dev/null || fail "no ompi_info; scripts/install_dependencies.sh installs it"

output=$(realpath -m "$output")
mkdir -p "$(dirname "$output")"
bundle=$(mktemp -d "$output.XXXXXX")
trap 'rm -rf "$bundle"' EXIT
chmod 755 "$bundle"
mkdir -p "$bundle"/{bin,lib,scripts}

open_mpi_path() { ompi_info --parsable --path "$1" | sed -n "s/^path:$1://p"; }

# Open MPI finds its plug-ins and messages at the same paths below OPAL_PREFIX as below its prefix.
copy_open_mpi() {
    local prefix plugins data plugin
    prefix=$(open_mpi_path prefix)
    plugins=$(open_mpi_path pkglibdir)
    data=$(open_mpi_path pkgdatadir)
    [[ $plugins == "$prefix"/* && $data == "$prefix"/* ]] || fail "files of Open MPI are outside its prefix $prefix"
    cp -L "$(open_mpi_path bindir)"/{orterun,orted} "$bundle/bin"
    mkdir -p "$bundle/${plugins#"$prefix"/}" "$bundle/${data#"$prefix"/}" "$bundle/etc"
    for plugin in "$plugins"/*.so; do
        [[ $plugin =~ $excluded_plugins ]] || cp -L "$plugin" "$bundle/${plugins#"$prefix"/}"
    done
    cp -L "$data"/*.txt "$bundle/${data#"$prefix"/}"
}

# PMIx, if Open MPI does not include it.
copy_pmix() {
    local library prefix
    library=$(find_library libpmix.so.2) || return 0
    prefix=$(dirname "$(dirname "$(readlink -f "$library")")")
    mkdir -p "$bundle"/pmix/{lib,share}
    [[ ! -d $prefix/lib/pmix ]] || cp -RL "$prefix/lib/pmix" "$bundle/pmix/lib"
    [[ ! -d $prefix/share/pmix ]] || cp -RL "$prefix/share/pmix" "$bundle/pmix/share"
}

elf_files() {
    local file
    find "$bundle" -type f | while read -r file; do
        [[ $(head -c 4 "$file" | tr -d '\0') != $'\x7fELF' ]] || echo "$file"
    done
}

# Prints "name path" for each library that the given files need.
needed_by() { ldd "$@" 2>/dev/null | awk '$2 == "=>" { print $1, $3 == "not" ? "" : $3 }' | sort -u; }

find_library() {
    local plugins
    plugins=$(find "$bundle" -name 'mca_*.so')
    # shellcheck disable=SC2086  # one word per plug-in
    needed_by $plugins | awk -v name="$1" '$1 == name { print $2; found = 1 } END { exit !found }'
}

copy_libraries() {
    local files name path
    mapfile -t files < <(elf_files)
    while read -r name path; do
        [[ ! $name =~ $glibc && ! $name =~ $cuda ]] || continue
        [[ -e $bundle/lib/$name ]] && continue
        [[ -n $path ]] || fail "the library $name is not found"
        cp -L "$path" "$bundle/lib/$name"
    done < <(needed_by "${files[@]}")
}

relocate() {
    local file to_libraries
    elf_files | while read -r file; do
        to_libraries=$(realpath --relative-to="$(dirname "$file")" "$bundle/lib")
        # strip must run first, because it damages the output of patchelf.
        chmod u+w "$file"
        strip --strip-unneeded "$file"
        patchelf --set-rpath "\$ORIGIN/$to_libraries" "$file"
    done
}

# Only glibc and CUDA may be found outside the folder.
check_self_contained() {
    local files name path
    mapfile -t files < <(elf_files)
    while read -r name path; do
        [[ ! $name =~ $glibc && ! $name =~ $cuda ]] || continue
        [[ $path == "$bundle"/* ]] || fail "$name is outside the bundle: ${path:-not found}"
    done < <(env -i PATH="$PATH" bash -c "$(declare -f needed_by); needed_by \"\$@\"" - "${files[@]}")
}

newest_glibc_symbol() {
    elf_files | xargs objdump -T 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1
}

for program in "${programs[@]}"; do cp "$build/$program" "$bundle/bin"; done
if [[ -f $build/libhpcai_cuda.so ]]; then
    if ((${#programs[@]} > 1)); then
        [[ -x $build/cuda_test ]] || fail "no $build/cuda_test; scripts/build.sh builds it"
        cp "$build/cuda_test" "$bundle/bin"
    fi
    cp "$build/libhpcai_cuda.so" "$bundle/lib"
else
    echo "bundle.sh: $build has no CUDA engine; the bundle computes on CPUs" >&2
fi
# The CUDA libraries that the target must have, for bin/cuda_library_path.
[[ ! -f $build/libhpcai_cuda.so ]] ||
    readelf -d "$build/libhpcai_cuda.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -E "$cuda" >"$bundle/lib/cuda_libraries.txt"
cp scripts/bundle/{env.sh,mpirun,cuda_library_path} "$bundle/bin"
cp -R scripts/{usage.sh,mpi_environment.sh} "$bundle/scripts"
if ((${#programs[@]} > 1)); then
    cp -R scripts/{gpu_smoke.sh,smoke_report.py,compare} "$bundle/scripts"
    mkdir "$bundle/tests"
    cp -R tests/data "$bundle/tests"
fi
cp -R configs LICENSE "$bundle"
find "$bundle/scripts" -name __pycache__ -exec rm -r {} +
copy_open_mpi
copy_pmix
copy_libraries
relocate
check_self_contained
# nvJPEG, unchanged, for targets whose CUDA lacks it. The bundle also works without it.
if [[ ${#programs[@]} -gt 1 && -f $build/libhpcai_cuda.so ]]; then
    sha256=27f9c4a25a73f1d1ad35c342c8d657c8ff43e23877f338ef15fb2602ac2e5aa8 # of the wheel for x86-64
    if python3 -m pip install --quiet --no-deps --target "$bundle/nvjpeg" --require-hashes \
        --requirement <(echo "nvidia-nvjpeg==13.3.2.43 --hash=sha256:$sha256") 2>/dev/null; then
        mv "$bundle"/nvjpeg/nvidia/*/lib/libnvjpeg.so.13 "$bundle/lib"
    else
        echo "bundle.sh: pip cannot download nvJPEG; the bundle does not include it" >&2
    fi
    rm -rf "$bundle/nvjpeg"
fi

size_mib() { du -s --apparent-size --block-size=1M "$1" | cut -f 1; }
rm -rf "$output"
mv "$bundle" "$output"
tar -C "$(dirname "$output")" -czf "$output.tar.gz" "$(basename "$output")"
(($(size_mib "$output.tar.gz") <= limit_mib)) ||
    fail "$output.tar.gz has $(size_mib "$output.tar.gz") MiB, more than $limit_mib"

# Tests the bundle in another folder, in an empty environment and without this machine's Open MPI.
test_root=$(mktemp -d)
trap 'rm -rf "$bundle" "$test_root"' EXIT
cp -R "$output" "$test_root/moved"
(
    cd "$test_root"
    clean=(env -i PATH=/usr/bin:/bin HOME="$test_root" OMP_NUM_THREADS=1
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
    "${clean[@]}" moved/bin/hpcai500 --version
    "${clean[@]}" moved/bin/mpirun --oversubscribe --bind-to none -np 2 \
        hpcai500 run --config moved/configs/smoke.yaml --output result | tail -n 1
)
echo "$output: $(size_mib "$output") MiB; in $output.tar.gz $(size_mib "$output.tar.gz") MiB;" \
    "the target needs $(bundle=$output newest_glibc_symbol)"
