-- How many of the successful checks that count took about so long, for percentiles: pairs of a class and a count, such as
-- `47:12 48:3`. Null where it was not recorded.
ALTER TABLE monitor_states ADD COLUMN hour_latencies TEXT;
ALTER TABLE monitor_hours ADD COLUMN latencies TEXT;
ALTER TABLE monitor_days ADD COLUMN latencies TEXT;
