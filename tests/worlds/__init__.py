"""What many tests share, a file for each world: guards, tables of counts, ports."""
