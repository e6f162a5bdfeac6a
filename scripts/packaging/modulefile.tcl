#%Module1.0
# SPDX-License-Identifier: Apache-2.0
# `cmake --install` puts this in PREFIX/share/modulefiles/hpcai500/VERSION; it finds PREFIX from
# there, so the tree may be moved. `module use PREFIX/share/modulefiles; module load hpcai500`.
# check.sh tests it with environment-modules.
set folder [file dirname [file normalize $ModulesCurrentModulefile]]
set prefix [file dirname [file dirname [file dirname $folder]]]

module-whatis "HPC AI500 V3.0: a benchmark of HPC systems by training ensembles of networks"
proc ModulesHelp {} {
    puts stderr "hpcai500: mpirun -np 2 hpcai500 run --config \$HPCAI500_CONFIGS/smoke.yaml"
}
conflict hpcai500

prepend-path PATH $prefix/bin
setenv HPCAI500_ROOT $prefix
setenv HPCAI500_CONFIGS $prefix/share/hpcai500/configs
