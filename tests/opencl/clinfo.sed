s/ \(outboard [^)]*\)//
s/POCL|OUTBOARD/SUFFIX/g
# Extensions with functions of their own, and what they say.
/^ +cl_(khr_command_buffer|khr_spir) /d
:again
s/ cl_(khr_command_buffer|khr_spir)( |$)/\2/
t again
/Command buffer capabilities/,/  Profiling  /d
/SPIR versions/d
# What ours does not claim over every transport (opencl_fine_memory compares it over those that can).
/(Fine-grained buffer sharing|^    Atomics  )/d
# What ours does not claim.
/Run native kernels/d
