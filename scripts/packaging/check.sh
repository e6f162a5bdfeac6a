#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/packaging/check.sh [--image] [PROGRAM]
# Checks the recipes with the installed tools and prints what it skips. ReFrame runs PROGRAM (default:
# build/release/hpcai500). --image also builds the container with buildah (as root; minutes) on a Debian
# 12 from debootstrap, and runs smoke.yaml in it; the build uses the caller's ccache. Exit code: 0
# nothing failed, 1 a check failed, 2 usage.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
source scripts/usage.sh
usage_on_request scripts/packaging/check.sh "$@"
source scripts/mpi_environment.sh

image=false
[[ ${1:-} != --image ]] || { image=true && shift; }
if [[ $# -gt 1 || ${1:-} == -* ]]; then
    echo "scripts/packaging/check.sh: expected [--image] [PROGRAM], got '$*'" >&2
    exit 2
elif [[ $# == 1 && ! -x $1 ]]; then
    echo "scripts/packaging/check.sh: PROGRAM: expected a program, got '$1'" >&2
    exit 2
fi
program=$(realpath -m "${1:-build/release/hpcai500}")
recipes=$PWD/scripts/packaging
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

check() { # name, command...
    if "${@:2}" >"$work/log" 2>&1; then echo "ok       $1"; else
        echo "FAILED   $1"
        tail -n 30 "$work/log"
        failed=1
    fi
}
skip() { echo "skipped  $1: $2"; }
has() { command -v "$1" >/dev/null; }

python_parses() {
    local file
    for file in "$recipes"/spack/packages/*/package.py "$recipes"/reframe/*.py "$recipes"/easybuild/*.eb; do
        python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" || return 1
    done
    python3 -m json.tool "$recipes/reframe/references.json"
}

spack_repository() { env SPACK_USER_CONFIG_PATH="$work/spack" spack -C "$work/spack_scope" "$@"; }
# Many Spacks lack the CUDA, cuDNN and NCCL of the recipe, which audit reports as errors.
spack_audits() {
    local code=0
    spack_repository audit packages hpcai500 >"$work/audit" || code=$?
    cat "$work/audit"
    if grep '^[0-9]\+\.' "$work/audit" | grep -vE 'dependency on (cuda|cudnn|nccl)@'; then return 1; fi
    # If Spack fails without a finding, the audit has not run.
    ((code == 0)) || grep -q '^[0-9]\+\.' "$work/audit"
}
check_spack() {
    mkdir -p "$work/spack_scope"
    printf 'repos:\n- %s\n' "$recipes/spack" >"$work/spack_scope/repos.yaml"
    check "Spack: audit" spack_audits
    check "Spack: concretizes hpcai500 +tests" spack_repository spec hpcai500 +tests
}

# EasyBuild expects environment-modules in a different folder than Debian.
easybuild() {
    mkdir -p "$work/modules/libexec"
    ln -sf /usr/lib/*/modulecmd.tcl "$work/modules/libexec"
    env MODULESHOME="$work/modules" EASYBUILD_PREFIX="$work/eb" EASYBUILD_MODULES_TOOL=EnvironmentModules \
        EASYBUILD_MODULE_SYNTAX=Tcl EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES=1 \
        bash -c 'source /usr/share/modules/init/bash; MODULESHOME=$0/modules exec eb "$@"' "$work" "$@"
}
check_easybuild() {
    check "EasyBuild: style" easybuild --check-style "$recipes"/easybuild/*.eb
    check "EasyBuild: dry run resolves all" easybuild --robot "$recipes/easybuild:" --dry-run \
        "$recipes"/easybuild/hpcai500-*.eb
}

reframe_with() { # options...
    (cd "$work" && reframe --nocolor --prefix "$work/reframe" -C "$recipes/reframe/settings.py" \
        -c "$recipes/reframe/hpcai500_check.py" -S program="$program" "$@")
}
reframe_runs() {
    reframe_with -r --performance-report --report-junit="$work/junit.xml" &&
        grep -q '<testsuite .*failures="0".*tests="1"' "$work/junit.xml"
}
# Checks that ReFrame fails for a reference speed that no machine reaches.
reframe_refuses() {
    echo '{"smoke": {"*": {"images_per_second": [1e12, -0.1, null]}}}' >"$work/references.json"
    ! reframe_with -r -S references="$work/references.json" --report-junit="$work/junit.xml" &&
        grep -q '<testsuite .*failures="1".*tests="1"' "$work/junit.xml"
}
check_reframe() {
    check "ReFrame: dry run" reframe_with --dry-run
    [[ -x $program ]] || { skip "ReFrame: runs" "no $program" && return; }
    mpi_environment 2 >/dev/null
    check "ReFrame: runs smoke.yaml, JUnit report" reframe_runs
    check "ReFrame: fails below a reference" reframe_refuses
}

install_modules() { # as cmake --install does
    local folder="$work/prefix/share/modulefiles/hpcai500"
    mkdir -p "$folder" "$work/prefix/bin"
    cp "$recipes/modulefile.tcl" "$folder/0.1.0"
    cp "$recipes/modulefile.lua" "$folder/0.1.0.lua"
}
module_loads() { # shell code that defines `module`
    env -i PATH="$PATH" HOME="$work" bash -c 'source '"$1"' && module use "$0/prefix/share/modulefiles" &&
        module load hpcai500 && [[ $PATH == "$0/prefix/bin:"* && $HPCAI500_ROOT == "$0/prefix" &&
        $HPCAI500_CONFIGS == "$0/prefix/share/hpcai500/configs" ]] && module unload hpcai500 &&
        [[ -z ${HPCAI500_ROOT-} ]]' "$work"
}
check_modules() {
    install_modules
    local lmod
    if [[ -f /usr/share/modules/init/bash ]]; then
        check "module file (Tcl): loads" module_loads /usr/share/modules/init/bash
    else skip "module file (Tcl)" "no environment-modules"; fi
    lmod=${LMOD_PKG:-/usr/share/lmod/lmod}/init/bash
    if [[ -f $lmod ]]; then check "module file (Lua): loads in Lmod" module_loads "$lmod"; else
        skip "module file (Lua): loads" "no Lmod"
        if has luac; then check "module file (Lua): syntax" luac -p "$recipes/modulefile.lua"; fi
    fi
}

# Every command has a page, and man formats all pages without warnings. COMMANDS.md has no sections for
# hpcai500 itself, config, data and data generate.
man_pages_render() {
    "$recipes/make_man_pages.sh" "$program" "$work/man" &&
        [[ $(find "$work/man" -name '*.1' | wc -l) == $(($(grep -c '^## ' docs/COMMANDS.md) + 4)) ]] &&
        grep -q '^hpcai500.*-plan .*energy' "$work/man/hpcai500-plan.1" &&
        ! LC_ALL=C.UTF-8 man --warnings --local-file --pager=cat "$work"/man/*.1 2>&1 >/dev/null | grep .
}
check_man_pages() {
    has help2man && has man || { skip "manual pages" "no help2man or man" && return; }
    [[ -x $program ]] || { skip "manual pages" "no $program" && return; }
    check "manual pages: one per command, no warnings" man_pages_render
}

section() { awk -v name="%$1" '/^%/ { on = $1 == name; next } on' "$recipes/hpcai500.def"; }
in_image() {
    buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"
}
base_image() {
    local container
    debootstrap --variant=minbase bookworm "$work/rootfs" && container=$(in_image from scratch) &&
        in_image add -q "$container" "$work/rootfs" / &&
        in_image commit -q "$container" docker.io/library/debian:12-slim
}
image_builds() {
    local cache=()
    [[ ! -d $HOME/.cache/ccache ]] || cache=(-v "$HOME/.cache/ccache:/root/.cache/ccache")
    git clone -q . "$work/clone" && in_image bud --isolation chroot --pull-never --network host \
        --build-arg JOBS="${JOBS:-$(nproc)}" "${cache[@]}" \
        -f "$recipes/Dockerfile" -t hpcai500 "$work/clone"
}
image_runs() {
    local container
    container=$(in_image from localhost/hpcai500) && in_image run --isolation chroot "$container" -- \
        bash -c 'mpirun --oversubscribe --bind-to none -np 2 hpcai500 run --output r \
            --config $HPCAI500_CONFIGS/smoke.yaml && hpcai500 verify r | grep "^RESULT CUSTOM"'
}
apptainer_sections_run() {
    local container
    container=$(in_image from localhost/hpcai500) &&
        in_image run --isolation chroot "$container" -- sh -ec "$(section environment; section test)"
}
check_image() {
    has buildah && has debootstrap || { skip "container" "no buildah or debootstrap" && return; }
    check "debootstrap makes a base image" base_image
    check "Dockerfile: builds" image_builds
    check "Dockerfile: smoke.yaml runs in the image" image_runs
    check "hpcai500.def: %environment and %test in that image" apptainer_sections_run
}

check "Python and JSON parse" python_parses
check "shell scripts parse" bash -n "$recipes/build_in_image.sh"
if has hadolint; then check "Dockerfiles: hadolint" hadolint --ignore DL3008 "$recipes"/*Dockerfile; else
    skip "Dockerfiles: hadolint" "not installed"; fi
if has spack; then check_spack; else skip Spack "no spack"; fi
if has eb && [[ -f /usr/share/modules/init/bash ]]; then check_easybuild; else
    skip EasyBuild "no eb or no environment-modules"; fi
if has reframe; then check_reframe; else skip ReFrame "no reframe"; fi
check_modules
check_man_pages
if $image; then check_image; else skip "container" "without --image"; fi
has apptainer || skip "Apptainer" "not installed; its commands are those of the Dockerfile"
exit $failed
