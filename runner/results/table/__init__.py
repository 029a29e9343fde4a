"""How is a table written?"""
