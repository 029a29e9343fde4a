"""From a fitted model to rows: drawn along its tree, then rearranged towards marginals that no clique of the
tree holds."""
