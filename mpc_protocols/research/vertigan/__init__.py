"""The star protocol of a training: a server and the owners of columns, who hear of nobody but the server."""
