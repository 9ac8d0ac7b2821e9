-- Captures that left a hold open: each has an entry in the ledger, and their number is limited.
ALTER TABLE meter_holds ADD COLUMN captures INTEGER NOT NULL DEFAULT 0;
