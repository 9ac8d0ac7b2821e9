-- Sum of the latencies of the successful checks that count, for the average of an hour or a day; null where it was not recorded.
ALTER TABLE monitor_states ADD COLUMN hour_latency INTEGER;
ALTER TABLE monitor_hours ADD COLUMN latency INTEGER;
ALTER TABLE monitor_days ADD COLUMN latency INTEGER;
