"""Loops of our own as machine code: LLVM's intermediate representation, compiled in this process's memory where
llvmlite is installed; nothing of it is written to disk or read from there."""
