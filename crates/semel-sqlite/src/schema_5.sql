-- While a clock hold is open the latest time never goes back, whatever the machine's clock says: `hold` is by how many milliseconds it is ahead of
-- the trusted time. Zero: no hold is open. `behind` goes on saying by how much the clock is ahead.
ALTER TABLE semel_clock ADD COLUMN hold INTEGER NOT NULL DEFAULT 0;
UPDATE semel_clock SET hold = max(behind, 0);
