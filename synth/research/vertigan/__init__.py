"""VertiGAN: a generator trained against critics, one at each owner of columns, with noise that each owner
draws for itself."""
