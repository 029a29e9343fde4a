"""The protocols for a program of the user's own: what does three parties' code call, without a study, tables
or a model?"""
