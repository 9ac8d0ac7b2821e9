-- Packets of the last check, and of each check: sent, received, and the shortest, average and longest round-trip time.
ALTER TABLE monitor_states ADD COLUMN icmp TEXT;
ALTER TABLE monitor_checks ADD COLUMN icmp TEXT;
