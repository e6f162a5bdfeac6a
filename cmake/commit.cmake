# Writes the commit of the source to OUTPUT if it has changed; `git archive` writes it to cmake/commit.txt.
file(STRINGS ${SOURCE}/cmake/commit.txt commit)
if(commit MATCHES "Format")
  execute_process(
    COMMAND git -C ${SOURCE} --git-dir=.git describe --always --abbrev=40 --exclude=* --dirty
    OUTPUT_VARIABLE commit RESULT_VARIABLE no_commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(no_commit)
    set(commit unknown)
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define HPCAI500_COMMIT \"${commit}\"\n")
