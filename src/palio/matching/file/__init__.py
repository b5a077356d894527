"""Tables in memory-mapped files, and the checks that a file is one."""
