-- SPDX-License-Identifier: Apache-2.0
-- `cmake --install` puts this in PREFIX/share/modulefiles/hpcai500/VERSION.lua; it finds PREFIX
-- from there, so the tree may be moved. `module use PREFIX/share/modulefiles; module load hpcai500`.
-- check.sh tests it with Lmod.
local prefix = myFileName():gsub("/share/modulefiles/hpcai500/[^/]*$", "")

whatis("HPC AI500 V3.0: a benchmark of HPC systems by training ensembles of networks")
help("hpcai500: mpirun -np 2 hpcai500 run --config $HPCAI500_CONFIGS/smoke.yaml")
conflict("hpcai500")

prepend_path("PATH", pathJoin(prefix, "bin"))
setenv("HPCAI500_ROOT", prefix)
setenv("HPCAI500_CONFIGS", pathJoin(prefix, "share/hpcai500/configs"))
