"""What an auditor recomputes of finished runs, from their files alone (`docs/howto/verify-a-run.md`).

    files      the same at all parties, the study that was agreed, signatures, the report
    collected  what contributors of a run over bundles are told
    spending   what every event costs, by the audit's second accountant; the cap; journals; ledgers

Nothing is believed because it is written down: what can be computed is computed, and what cannot is said to be "not checked".
Each finding is one of `runner.check.finding`.
"""
