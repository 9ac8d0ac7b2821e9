/** The relevant tables of Uptime Kuma, with a row each. Every monitor has the columns of all types. */
export const KUMA_TABLES = `
CREATE TABLE notification (id INTEGER PRIMARY KEY, name VARCHAR(255), active BOOLEAN DEFAULT 1, user_id INTEGER, is_default BOOLEAN DEFAULT 0, config TEXT);
CREATE TABLE monitor (id INTEGER PRIMARY KEY, name VARCHAR(150), active BOOLEAN DEFAULT 1, user_id INTEGER, interval INTEGER DEFAULT 20, url TEXT,
  type VARCHAR(20), weight INTEGER DEFAULT 2000, hostname VARCHAR(255), port INTEGER, created_date DATETIME, keyword VARCHAR(255), maxretries INTEGER DEFAULT 0,
  ignore_tls BOOLEAN DEFAULT 0, upside_down BOOLEAN DEFAULT 0, maxredirects INTEGER DEFAULT 10, accepted_statuscodes_json TEXT DEFAULT '["200-299"]',
  dns_resolve_type VARCHAR(5), dns_resolve_server VARCHAR(255), dns_last_result VARCHAR(255), retry_interval INTEGER DEFAULT 0, push_token VARCHAR(20),
  method TEXT DEFAULT 'GET', body TEXT, headers TEXT, basic_auth_user TEXT, basic_auth_pass TEXT, docker_host INTEGER, docker_container VARCHAR(255),
  proxy_id INTEGER, expiry_notification BOOLEAN DEFAULT 1, mqtt_topic TEXT, grpc_enable_tls BOOLEAN DEFAULT 0, radius_secret VARCHAR(255),
  resend_interval INTEGER DEFAULT 0, packet_size INTEGER DEFAULT 56, game VARCHAR(255), http_body_encoding VARCHAR(25), description TEXT,
  tls_ca TEXT, parent INTEGER, invert_keyword BOOLEAN DEFAULT 0, json_path TEXT, expected_value VARCHAR(255), auth_method VARCHAR(250),
  timeout DOUBLE DEFAULT 0, gamedig_given_port_only BOOLEAN DEFAULT 1, cache_bust BOOLEAN DEFAULT 0, conditions TEXT DEFAULT '[]',
  rabbitmq_nodes TEXT, snmp_version TEXT DEFAULT '2c', json_path_operator TEXT, smtp_security TEXT, ping_count INTEGER DEFAULT 1, ip_family VARCHAR(4));
CREATE TABLE monitor_notification (id INTEGER PRIMARY KEY, monitor_id INTEGER, notification_id INTEGER);
CREATE TABLE tag (id INTEGER PRIMARY KEY, name VARCHAR(255), color VARCHAR(255));
CREATE TABLE monitor_tag (id INTEGER PRIMARY KEY, monitor_id INTEGER, tag_id INTEGER, value TEXT);
CREATE TABLE status_page (id INTEGER PRIMARY KEY, slug VARCHAR(255), title VARCHAR(255), description TEXT, icon VARCHAR(255), theme VARCHAR(30),
  published BOOLEAN DEFAULT 1, search_engine_index BOOLEAN DEFAULT 1, show_tags BOOLEAN DEFAULT 0, password VARCHAR, created_date DATETIME,
  modified_date DATETIME, footer_text TEXT, custom_css TEXT, show_powered_by BOOLEAN DEFAULT 1, show_certificate_expiry BOOLEAN DEFAULT 0);
CREATE TABLE status_page_cname (id INTEGER PRIMARY KEY, status_page_id INTEGER, domain VARCHAR);
CREATE TABLE "group" (id INTEGER PRIMARY KEY, name VARCHAR(255), created_date DATETIME, public BOOLEAN, active BOOLEAN, weight INTEGER DEFAULT 1000, status_page_id INTEGER);
CREATE TABLE monitor_group (id INTEGER PRIMARY KEY, monitor_id INTEGER, group_id INTEGER, weight INTEGER DEFAULT 1000, send_url BOOLEAN DEFAULT 0);
CREATE TABLE maintenance (id INTEGER PRIMARY KEY, title VARCHAR(150), description TEXT, user_id INTEGER, active BOOLEAN DEFAULT 1, strategy VARCHAR(50),
  start_date DATETIME, end_date DATETIME, start_time TIME, end_time TIME, weekdays VARCHAR(250) DEFAULT '[]', days_of_month TEXT DEFAULT '[]',
  interval_day INTEGER, cron TEXT, timezone VARCHAR(255), duration INTEGER);
CREATE TABLE monitor_maintenance (id INTEGER PRIMARY KEY, monitor_id INTEGER, maintenance_id INTEGER);
CREATE TABLE maintenance_status_page (id INTEGER PRIMARY KEY, status_page_id INTEGER, maintenance_id INTEGER);

INSERT INTO notification (id, name, user_id, config) VALUES (1, 'ntfy', 1,
  '{"type":"ntfy","name":"ntfy","ntfyserverurl":"https://ntfy.example.com/","ntfytopic":"alerts","ntfyAuthenticationMethod":"accessToken","ntfyaccesstoken":"tk_1"}');
INSERT INTO monitor (id, name, user_id, type, url, parent, interval, maxretries, retry_interval, timeout, accepted_statuscodes_json, basic_auth_user,
  basic_auth_pass, auth_method, expiry_notification, http_body_encoding, json_path_operator, created_date)
  VALUES (1, 'Shop', 1, 'http', 'https://shop.example.com/', 2, 60, 1, 60, 48, '["200-299","401"]', 'ada', 'secret', 'basic', 0, 'json', '==', '2030-01-05 10:00:00'),
  (2, 'Production', 1, 'group', NULL, NULL, 60, 0, 60, 48, '["200-299"]', NULL, NULL, NULL, 0, NULL, NULL, '2030-01-05 10:00:00');
INSERT INTO monitor_notification (monitor_id, notification_id) VALUES (1, 1);
INSERT INTO status_page (id, slug, title, description, icon, theme, footer_text, custom_css, created_date)
  VALUES (1, 'public', 'Shop', 'All of it', '/icon.svg', 'auto', 'Bye', 'body { color: red }', '2030-01-05 10:00:00');
INSERT INTO status_page_cname (status_page_id, domain) VALUES (1, 'status.example.com');
INSERT INTO "group" (id, name, public, active, weight, status_page_id) VALUES (1, 'Services', 1, 1, 1, 1);
INSERT INTO monitor_group (monitor_id, group_id, weight, send_url) VALUES (1, 1, 1, 1);
INSERT INTO maintenance (id, title, description, strategy, start_date, end_date, cron, timezone, duration) VALUES
  (1, 'Move', 'New machine', 'single', '2040-07-01 22:00:00', '2040-07-01 23:30:00', NULL, 'Europe/Berlin', NULL),
  (2, 'Weekly', 'Updates', 'recurring-weekday', NULL, NULL, '30 2 * * 0', 'Europe/Berlin', 3600),
  (3, 'By hand', '', 'manual', NULL, NULL, NULL, 'SAME_AS_SERVER', NULL);
INSERT INTO monitor_maintenance (monitor_id, maintenance_id) VALUES (1, 1);
INSERT INTO maintenance_status_page (status_page_id, maintenance_id) VALUES (1, 1);
`;
