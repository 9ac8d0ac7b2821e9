-- Individual evaluations of flags.
CREATE TABLE flag_evaluations (
  flag_ref INTEGER NOT NULL,
  -- Days since 1970, UTC.
  day      INTEGER NOT NULL,
  -- JSON: numbers by hour of the day, by variant; the variant of an evaluation without a value is empty.
  counts   TEXT    NOT NULL,
  PRIMARY KEY (flag_ref, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX flag_evaluations_by_day ON flag_evaluations (day);
