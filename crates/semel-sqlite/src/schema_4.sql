-- A clock that jumps ahead is not believed: `now` holds trusted time alone, and above zero `behind` says that a clock hold is open, by how
-- many milliseconds the machine's clock is ahead. `written_by` is a random number for each process.
ALTER TABLE semel_clock ADD COLUMN behind INTEGER NOT NULL DEFAULT 0;
ALTER TABLE semel_clock ADD COLUMN written_by INTEGER NOT NULL DEFAULT 0;
