-- While a clock hold is open the latest time never goes back, whatever the server's clock says: by how many milliseconds it is ahead of the trusted
-- time. Zero: no hold is open. `behind` goes on saying by how much the server's clock is ahead.
ALTER TABLE semel_clock ADD COLUMN hold bigint NOT NULL DEFAULT 0;
UPDATE semel_clock SET hold = greatest(behind, 0);
