"""FLAIM: clients that choose by themselves what they answer, one cohort a round, added up with noise that
nobody knows.

Problem: custodians that come by for a moment will not leave all their counts (350 kB), only a few: each
chooses the marginal that the public model gets most wrong on its own rows (privately), and the sums over
those who chose alike are measured (Maddock, Cormode, Maple, KDD 2024; the accounting and what was mended:
`docs/design/flaim.md`).

    variants    the family, as one descriptor each         plan     budget, noise, rounds
    client      one custodian's side: sizes, choices       server   the rounds, on `Cohorts`
    admission   what those who obey a leader admit         accounts what each client is charged
    scores      what a client chooses by                   raking   a model with given one-way marginals

A study says `algorithm = "flaim"` (`algorithm`, `rounds`); simulations are `cosynth bench utility
--federated`.
"""
