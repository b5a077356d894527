"""The papers' evaluations, run again: `palio lab`.

    figures/ ──points──▶ runner ──a Spark task a point──▶ results ──rows──▶ report ◀──verdicts── claims/

An experiment is one file of `figures/`. Its stored rows are all that the report and the claims read.
"""
