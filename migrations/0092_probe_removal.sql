-- The ids of results of a removed probe are removed in parts: there are up to 20,000 of each.
DROP TRIGGER probes_discounted;
CREATE TRIGGER probes_discounted AFTER DELETE ON probes BEGIN
  UPDATE account_counts SET count = count - 1 WHERE account_ref = OLD.account_ref AND kind = 'probes';
END;
