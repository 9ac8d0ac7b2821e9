/**
 * The ids of operations in the API document: an object and one verb (`get`, `list`, `create`, `update`, `delete`, or what it does).
 * Operations had their names before, and audit logs, metrics and the client's code keep them; the document names both.
 */
const VERBS: Readonly<Record<string, string>> = { read: "get", change: "update" };

/** Ids that no rule gives: names without a verb, or with an unusual one. */
const IDS: Readonly<Record<string, string>> = {
  "catch.events.ack": "catch.events.acknowledge",
  "catch.events.raw": "catch.events.raw.get",
  "catch.in": "catch.receive",
  "check.http": "check.http.get",
  "gate.config": "gate.config.get",
  "gate.definition": "gate.definition.get",
  "gate.evaluations": "gate.evaluations.get",
  "keys.patch": "keys.update",
  "keys.revoke_owned": "keys.revoke_by_owner",
  "keys.usage": "keys.usage.get",
  "latch.force": "latch.force_release",
  "latch.status": "latch.get",
  "meter.alert.project.delete": "meter.project_alert.delete",
  "meter.alert.project.read": "meter.project_alert.get",
  "meter.alert.project.set": "meter.project_alert.set",
  "meter.balance": "meter.balance.get",
  "meter.history": "meter.history.list",
  "meter.own.balance": "meter.own.balance.get",
  "meter.own.history": "meter.own.history.list",
  "meter.usage": "meter.usage.get",
  "meter.usage.project": "meter.project_usage.get",
  "monitors.history": "monitors.history.list",
  // Another operation has had the name monitors.incidents.update.
  "monitors.incidents.change": "monitors.incidents.edit",
  "monitors.incidents.update": "monitors.incidents.updates.create",
  "monitors.ping_key": "monitors.ping_key.renew",
  "monitors.pings": "monitors.pings.list",
  "ofrep.bulk": "ofrep.evaluate_all",
  "ofrep.events": "ofrep.events.stream",
  "people.me.passkeys.options": "people.me.passkeys.prepare",
  "people.roles": "people.roles.list",
  "projects.overview": "projects.overview.get",
  "relay.body": "relay.body.get",
  "relay.messages.batch": "relay.messages.send_batch",
  "relay.portal.deliveries.body": "relay.portal.deliveries.body.get",
  "relay.stats": "relay.stats.get",
  "session.passkey.options": "session.passkey.prepare",
  signup: "accounts.sign_up",
  "status.badge": "status.badge.get",
  "status.calendar": "status.calendar.get",
  "status.feed": "status.feed.get",
  "status.group": "status.group.get",
  "status.group_badge": "status.group_badge.get",
  "status.group_badge_data": "status.group_badge_data.get",
  "status.icon": "status.icon.get",
  "status.incident": "status.incident.get",
  "status.page": "status.page.get",
  "status.page_badge": "status.page_badge.get",
  "status.page_badge_data": "status.page_badge_data.get",
  "status.subscribe_form": "status.subscribe_form.get",
  "status.subscription": "status.subscription.get",
  "status.subscription_change": "status.subscription.update",
  "witness.bundle": "witness.receipts.bundle.get",
  "witness.checkpoint": "witness.checkpoint.get",
  "witness.peer.checkpoint": "witness.peer.checkpoint.get",
  "witness.proofs.consistency": "witness.proofs.consistency.get",
  "witness.proofs.inclusion": "witness.proofs.inclusion.get",
  "witness.pubkey": "witness.public_key.get",
  "witness.tlog.checkpoint": "witness.tlog.checkpoint.get",
  "witness.tlog.tile": "witness.tlog.tile.get",
};

/** The id of an operation in the API document, by the operation's name. */
export function operationIdOf(name: string): string {
  const exception = IDS[name];
  if (exception !== undefined) return exception;
  const words = name.split(".");
  const verb = words.pop() ?? "";
  return [...words, VERBS[verb] ?? verb].join(".");
}
