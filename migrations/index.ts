import type { Migration } from "../src/kernel/storage/migrate.ts";
import kernel from "./0001_kernel.sql" with { type: "text" };
import accounts from "./0002_accounts.sql" with { type: "text" };
import projects from "./0003_projects.sql" with { type: "text" };
import meters from "./0004_meters.sql" with { type: "text" };
import keys from "./0005_keys.sql" with { type: "text" };
import flags from "./0006_flags.sql" with { type: "text" };
import locks from "./0007_locks.sql" with { type: "text" };
import relay from "./0008_relay.sql" with { type: "text" };
import monitors from "./0009_monitors.sql" with { type: "text" };
import catchBuckets from "./0010_catch.sql" with { type: "text" };
import notary from "./0011_notary.sql" with { type: "text" };
import idempotencyPerProject from "./0012_idempotency_per_project.sql" with { type: "text" };
import accountCounts from "./0013_account_counts.sql" with { type: "text" };
import names from "./0014_names.sql" with { type: "text" };
import audit from "./0015_audit.sql" with { type: "text" };
import sessions from "./0016_sessions.sql" with { type: "text" };
import keyLimits from "./0017_key_limits.sql" with { type: "text" };
import meterHolds from "./0018_meter_holds.sql" with { type: "text" };
import flagDefinitions from "./0019_flag_definitions.sql" with { type: "text" };
import eventAttempts from "./0020_event_attempts.sql" with { type: "text" };
import relaySecretsAttempts from "./0021_relay_secrets_attempts.sql" with { type: "text" };
import endpoints from "./0022_endpoints.sql" with { type: "text" };
import schedules from "./0023_schedules.sql" with { type: "text" };
import catchPull from "./0024_catch_pull.sql" with { type: "text" };
import catchSettings from "./0025_catch_settings.sql" with { type: "text" };
import heartbeats from "./0026_heartbeats.sql" with { type: "text" };
import assertions from "./0027_assertions.sql" with { type: "text" };
import incidents from "./0028_incidents.sql" with { type: "text" };
import maintenance from "./0029_maintenance.sql" with { type: "text" };
import statusPages from "./0030_status_pages.sql" with { type: "text" };
import auditBytes from "./0031_audit_bytes.sql" with { type: "text" };
import relayFanOuts from "./0032_relay_fan_outs.sql" with { type: "text" };
import incidentLinks from "./0033_incident_links.sql" with { type: "text" };
import relayRepairs from "./0034_relay_repairs.sql" with { type: "text" };
import housekeeping from "./0035_housekeeping.sql" with { type: "text" };
import holdCaptures from "./0036_hold_captures.sql" with { type: "text" };
import endpointOrder from "./0037_endpoint_order.sql" with { type: "text" };
import channelReminders from "./0038_channel_reminders.sql" with { type: "text" };
import endpointOwners from "./0039_endpoint_owners.sql" with { type: "text" };
import accountRemoval from "./0040_account_removal.sql" with { type: "text" };
import portalLinks from "./0041_portal_links.sql" with { type: "text" };
import eventTargets from "./0042_event_targets.sql" with { type: "text" };
import statusSubscribers from "./0043_status_subscribers.sql" with { type: "text" };
import incidentAnnounced from "./0044_incident_announced.sql" with { type: "text" };
import notaryTree from "./0045_notary_tree.sql" with { type: "text" };
import notaryRestores from "./0046_notary_restores.sql" with { type: "text" };
import replicaPosition from "./0048_replica_position.sql" with { type: "text" };
import managed from "./0049_managed.sql" with { type: "text" };
import monitorLatency from "./0050_monitor_latency.sql" with { type: "text" };
import incidentAlerts from "./0051_incident_alerts.sql" with { type: "text" };
import relayBodiesLast from "./0052_relay_bodies_last.sql" with { type: "text" };
import notaryWitnesses from "./0053_notary_witnesses.sql" with { type: "text" };
import notaryRedactions from "./0054_notary_redactions.sql" with { type: "text" };
import deletedEndpoints from "./0055_deleted_endpoints.sql" with { type: "text" };
import logIdentity from "./0056_log_identity.sql" with { type: "text" };
import monitorTime from "./0057_monitor_time.sql" with { type: "text" };
import catchTooLarge from "./0058_catch_too_large.sql" with { type: "text" };
import laterDeliveries from "./0059_later_deliveries.sql" with { type: "text" };
import laterDeliveriesOfOwners from "./0060_later_deliveries_of_owners.sql" with { type: "text" };
import serverMinutes from "./0061_server_minutes.sql" with { type: "text" };
import pushTokens from "./0062_push_tokens.sql" with { type: "text" };
import serverSettings from "./0063_server_settings.sql" with { type: "text" };
import relayNextAttempt from "./0064_relay_next_attempt.sql" with { type: "text" };
import overdueHeartbeats from "./0065_overdue_heartbeats.sql" with { type: "text" };
import sharedLocks from "./0066_shared_locks.sql" with { type: "text" };
import relayOrder from "./0067_relay_order.sql" with { type: "text" };
import people from "./0068_people.sql" with { type: "text" };
import relayCallbacks from "./0069_relay_callbacks.sql" with { type: "text" };
import probes from "./0070_probes.sql" with { type: "text" };
import monitorLatencies from "./0071_monitor_latencies.sql" with { type: "text" };
import relayDeliveryTemplates from "./0072_relay_delivery_templates.sql" with { type: "text" };
import flagSchedules from "./0073_flag_schedules.sql" with { type: "text" };
import flagEvaluations from "./0074_flag_evaluations.sql" with { type: "text" };
import largeEvents from "./0075_large_events.sql" with { type: "text" };
import incidentAuthors from "./0076_incident_authors.sql" with { type: "text" };
import relayEventTypes from "./0077_relay_event_types.sql" with { type: "text" };
import flagProposals from "./0078_flag_proposals.sql" with { type: "text" };
import channelEscalation from "./0079_channel_escalation.sql" with { type: "text" };
import monitorClientKeys from "./0080_monitor_client_keys.sql" with { type: "text" };
import alertLinks from "./0081_alert_links.sql" with { type: "text" };
import keyLimitLevels from "./0082_key_limit_levels.sql" with { type: "text" };
import heartbeatRuns from "./0083_heartbeat_runs.sql" with { type: "text" };
import heldAlerts from "./0084_held_alerts.sql" with { type: "text" };
import manualMonitors from "./0085_manual_monitors.sql" with { type: "text" };
import keyRoles from "./0086_key_roles.sql" with { type: "text" };
import piecesByRow from "./0087_pieces_by_row.sql" with { type: "text" };
import icmp from "./0088_icmp.sql" with { type: "text" };
import projectTimeZone from "./0089_project_time_zone.sql" with { type: "text" };
import domain from "./0090_domain.sql" with { type: "text" };
import statusUnsubscribed from "./0091_status_unsubscribed.sql" with { type: "text" };
import probeRemoval from "./0092_probe_removal.sql" with { type: "text" };
import alertDigests from "./0093_alert_digests.sql" with { type: "text" };
import incidentProbeStates from "./0094_incident_probe_states.sql" with { type: "text" };

/** Every step of the schema, in order. A step that has been released is never changed. */
export const MIGRATIONS: readonly Migration[] = [
  { name: "0001_kernel", sql: kernel },
  { name: "0002_accounts", sql: accounts },
  { name: "0003_projects", sql: projects },
  { name: "0004_meters", sql: meters },
  { name: "0005_keys", sql: keys },
  { name: "0006_flags", sql: flags },
  { name: "0007_locks", sql: locks },
  { name: "0008_relay", sql: relay },
  { name: "0009_monitors", sql: monitors },
  { name: "0010_catch", sql: catchBuckets },
  { name: "0011_notary", sql: notary },
  { name: "0012_idempotency_per_project", sql: idempotencyPerProject },
  { name: "0013_account_counts", sql: accountCounts },
  { name: "0014_names", sql: names },
  { name: "0015_audit", sql: audit },
  { name: "0016_sessions", sql: sessions },
  { name: "0017_key_limits", sql: keyLimits },
  { name: "0018_meter_holds", sql: meterHolds },
  { name: "0019_flag_definitions", sql: flagDefinitions },
  { name: "0020_event_attempts", sql: eventAttempts },
  { name: "0021_relay_secrets_attempts", sql: relaySecretsAttempts },
  { name: "0022_endpoints", sql: endpoints },
  { name: "0023_schedules", sql: schedules },
  { name: "0024_catch_pull", sql: catchPull },
  { name: "0025_catch_settings", sql: catchSettings },
  { name: "0026_heartbeats", sql: heartbeats },
  { name: "0027_assertions", sql: assertions },
  { name: "0028_incidents", sql: incidents },
  { name: "0029_maintenance", sql: maintenance },
  { name: "0030_status_pages", sql: statusPages },
  { name: "0031_audit_bytes", sql: auditBytes },
  { name: "0032_relay_fan_outs", sql: relayFanOuts },
  { name: "0033_incident_links", sql: incidentLinks },
  { name: "0034_relay_repairs", sql: relayRepairs },
  { name: "0035_housekeeping", sql: housekeeping },
  { name: "0036_hold_captures", sql: holdCaptures },
  { name: "0037_endpoint_order", sql: endpointOrder },
  { name: "0038_channel_reminders", sql: channelReminders },
  { name: "0039_endpoint_owners", sql: endpointOwners },
  { name: "0040_account_removal", sql: accountRemoval },
  { name: "0041_portal_links", sql: portalLinks },
  { name: "0042_event_targets", sql: eventTargets },
  { name: "0043_status_subscribers", sql: statusSubscribers },
  { name: "0044_incident_announced", sql: incidentAnnounced },
  { name: "0045_notary_tree", sql: notaryTree },
  { name: "0046_notary_restores", sql: notaryRestores },
  { name: "0048_replica_position", sql: replicaPosition },
  { name: "0049_managed", sql: managed },
  { name: "0050_monitor_latency", sql: monitorLatency },
  { name: "0051_incident_alerts", sql: incidentAlerts },
  { name: "0052_relay_bodies_last", sql: relayBodiesLast },
  { name: "0053_notary_witnesses", sql: notaryWitnesses },
  { name: "0054_notary_redactions", sql: notaryRedactions },
  { name: "0055_deleted_endpoints", sql: deletedEndpoints },
  { name: "0056_log_identity", sql: logIdentity },
  { name: "0057_monitor_time", sql: monitorTime },
  { name: "0058_catch_too_large", sql: catchTooLarge },
  { name: "0059_later_deliveries", sql: laterDeliveries },
  { name: "0060_later_deliveries_of_owners", sql: laterDeliveriesOfOwners },
  { name: "0061_server_minutes", sql: serverMinutes },
  { name: "0062_push_tokens", sql: pushTokens },
  { name: "0063_server_settings", sql: serverSettings },
  { name: "0064_relay_next_attempt", sql: relayNextAttempt },
  { name: "0065_overdue_heartbeats", sql: overdueHeartbeats },
  { name: "0066_shared_locks", sql: sharedLocks },
  { name: "0067_relay_order", sql: relayOrder },
  { name: "0068_people", sql: people },
  { name: "0069_relay_callbacks", sql: relayCallbacks },
  { name: "0070_probes", sql: probes },
  { name: "0071_monitor_latencies", sql: monitorLatencies },
  { name: "0072_relay_delivery_templates", sql: relayDeliveryTemplates },
  { name: "0073_flag_schedules", sql: flagSchedules },
  { name: "0074_flag_evaluations", sql: flagEvaluations },
  { name: "0075_large_events", sql: largeEvents },
  { name: "0076_incident_authors", sql: incidentAuthors },
  { name: "0077_relay_event_types", sql: relayEventTypes },
  { name: "0078_flag_proposals", sql: flagProposals },
  { name: "0079_channel_escalation", sql: channelEscalation },
  { name: "0080_monitor_client_keys", sql: monitorClientKeys },
  { name: "0081_alert_links", sql: alertLinks },
  { name: "0082_key_limit_levels", sql: keyLimitLevels },
  { name: "0083_heartbeat_runs", sql: heartbeatRuns },
  { name: "0084_held_alerts", sql: heldAlerts },
  { name: "0085_manual_monitors", sql: manualMonitors },
  { name: "0086_key_roles", sql: keyRoles },
  { name: "0087_pieces_by_row", sql: piecesByRow },
  { name: "0088_icmp", sql: icmp },
  { name: "0089_project_time_zone", sql: projectTimeZone },
  { name: "0090_domain", sql: domain },
  { name: "0091_status_unsubscribed", sql: statusUnsubscribed },
  { name: "0092_probe_removal", sql: probeRemoval },
  { name: "0093_alert_digests", sql: alertDigests },
  { name: "0094_incident_probe_states", sql: incidentProbeStates },
];
