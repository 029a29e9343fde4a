"""What an auditor recomputes of finished runs, from their files alone (`docs/howto/verify-a-run.md`).

    place      one directory with a finished run
    files      the same at all parties, all that a run leaves, the report
    agreed     the study that was agreed, and what run.json says that follows from it
    signers    signatures, and whose word they rest on
    collected  what contributors of a run over bundles are told
    spending   what every event costs, by the audit's second accountant; the cap; journals; ledgers
    recomputed what run.json says of its release, from table, measurements, model and study
    account    what its account states beside the events: the cap, sums, samplers' distance, the first count

Nothing is believed because it is written down: what can be computed is computed, and what cannot is said to
be "not checked". What is missing and should be there is a problem. Each finding is one of
`runner.check.finding`.
"""
