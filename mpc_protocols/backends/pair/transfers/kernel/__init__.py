"""What is computed of every transfer, as compiled code: the words are those of the NumPy form, to the bit."""
