"""The SQLite ledger of launches and samples."""
