import type { Answers, Api, ListOf, QueryOf } from "../api.ts";
import type {
  RelayBody,
  RelayEndpointBody,
  RelayEndpointPatch,
  RelayEndpointTestBody,
  RelayMessageBody,
  RelayMessageResendBody,
  RelayResendBody,
  RelaySecretRotateBody,
  ScheduleBody,
  ScheduleUpdateBody,
} from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Signed webhooks: sent later, or to every endpoint that takes a message. */
export class Relay {
  /** Where messages go to. */
  readonly endpoints: RelayEndpoints;
  /** What goes to all endpoints that take it. */
  readonly messages: RelayMessages;
  /** What is sent at the times of cron expressions. */
  readonly schedules: RelaySchedules;

  constructor(private readonly api: Api) {
    this.endpoints = new RelayEndpoints(api);
    this.messages = new RelayMessages(api);
    this.schedules = new RelaySchedules(api);
  }

  /** Schedules a delivery; under a `deduplication_id` that has made one within a day, it answers that one. */
  schedule(body: RelayBody, options?: ChangeOptions): Answers<"relay.schedule"> {
    return this.api.call("relay.schedule", { body }, options);
  }

  /** Deliveries, newest first; with `filter: "pulse"` only alerts of monitors, with `status: "failed"` those to look after. */
  list(query: QueryOf<"relay.list"> = {}, options: RequestOptions = {}): ListOf<"relay.list", "deliveries"> {
    return this.api.list("relay.list", "deliveries", { query }, options);
  }

  /** A delivery with each of its attempts: what was sent, and what came back. */
  get(relayId: string, options?: RequestOptions): Answers<"relay.read"> {
    return this.api.call("relay.read", { params: { relay_id: relayId } }, options);
  }

  /** Cancels a delivery. @throws NinefoldError `conflict` from its first attempt on. */
  cancel(relayId: string, options?: ChangeOptions): Answers<"relay.cancel"> {
    return this.api.call("relay.cancel", { params: { relay_id: relayId } }, options);
  }

  /** Sends a failed delivery again, under the same id. @throws NinefoldError `conflict` for one that has not failed. */
  resend(relayId: string, options?: ChangeOptions): Answers<"relay.resend"> {
    return this.api.call("relay.resend", { params: { relay_id: relayId } }, options);
  }

  /** Sends many failed deliveries again; with `dry_run` it only says how many match. */
  resendFailed(body: RelayResendBody, options?: ChangeOptions): Answers<"relay.resends.start"> {
    return this.api.call("relay.resends.start", { body }, options);
  }

  /** How far {@link resendFailed} has come. */
  resendProgress(resendId: string, options?: RequestOptions): Answers<"relay.resends.read"> {
    return this.api.call("relay.resends.read", { params: { resend_id: resendId } }, options);
  }

  /** Ends {@link resendFailed}; what was sent, was sent. */
  stopResend(resendId: string, options?: ChangeOptions): Answers<"relay.resends.stop"> {
    return this.api.call("relay.resends.stop", { params: { resend_id: resendId } }, options);
  }

  /** The project's signing secret, for receivers; made on first use. */
  secret(options?: ChangeOptions): Answers<"relay.secret.reveal"> {
    return this.api.call("relay.secret.reveal", {}, options);
  }

  /** Puts a new secret in its place; both sign for a grace, 24 hours unless given. */
  rotateSecret(body: RelaySecretRotateBody = {}, options?: ChangeOptions): Answers<"relay.secret.rotate"> {
    return this.api.call("relay.secret.rotate", { body }, options);
  }
}

/** The endpoints of a project. */
export class RelayEndpoints {
  constructor(private readonly api: Api) {}

  /** Makes an endpoint; the answer has its signing secret, this once. @throws NinefoldError `conflict` for a name that is taken. */
  create(body: RelayEndpointBody, options?: ChangeOptions): Answers<"relay.endpoints.create"> {
    return this.api.call("relay.endpoints.create", { body }, options);
  }

  /** Endpoints, newest first. */
  list(
    query: QueryOf<"relay.endpoints.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"relay.endpoints.list", "endpoints"> {
    return this.api.list("relay.endpoints.list", "endpoints", { query }, options);
  }

  /** An endpoint with its health and its figures. */
  get(endpointId: string, options?: RequestOptions): Answers<"relay.endpoints.read"> {
    return this.api.call("relay.endpoints.read", { params: { endpoint_id: endpointId } }, options);
  }

  /** Changes what is given; `state: "live"` also enables a disabled one. */
  update(
    endpointId: string,
    body: RelayEndpointPatch,
    options?: ChangeOptions,
  ): Answers<"relay.endpoints.change"> {
    return this.api.call("relay.endpoints.change", { params: { endpoint_id: endpointId }, body }, options);
  }

  /** Deletes an endpoint; what waits for it is cancelled. */
  delete(endpointId: string, options?: ChangeOptions): Answers<"relay.endpoints.delete"> {
    return this.api.call("relay.endpoints.delete", { params: { endpoint_id: endpointId } }, options);
  }

  /** Puts a new secret in its place; both sign for a grace, 24 hours unless given. */
  rotateSecret(
    endpointId: string,
    body: RelaySecretRotateBody = {},
    options?: ChangeOptions,
  ): Answers<"relay.endpoints.secret.rotate"> {
    const params = { endpoint_id: endpointId };
    return this.api.call("relay.endpoints.secret.rotate", { params, body }, options);
  }

  /** Sends a test event, whatever the endpoint's types and filter say. */
  test(
    endpointId: string,
    body: RelayEndpointTestBody = {},
    options?: ChangeOptions,
  ): Answers<"relay.endpoints.test"> {
    return this.api.call("relay.endpoints.test", { params: { endpoint_id: endpointId }, body }, options);
  }
}

/** The messages of a project. */
export class RelayMessages {
  constructor(private readonly api: Api) {}

  /** Sends a message to all endpoints that take it; one that was sent before, by its id, is answered as it was. */
  send(body: RelayMessageBody, options?: ChangeOptions): Answers<"relay.messages.send"> {
    return this.api.call("relay.messages.send", { body }, options);
  }

  /** Sends up to 100 messages: all, or none. */
  sendMany(messages: RelayMessageBody[], options?: ChangeOptions): Answers<"relay.messages.batch"> {
    return this.api.call("relay.messages.batch", { body: { messages } }, options);
  }

  /** Messages, newest first. */
  list(
    query: QueryOf<"relay.messages.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"relay.messages.list", "messages"> {
    return this.api.list("relay.messages.list", "messages", { query }, options);
  }

  /** A message with its deliveries. */
  get(messageId: string, options?: RequestOptions): Answers<"relay.messages.read"> {
    return this.api.call("relay.messages.read", { params: { message_id: messageId } }, options);
  }

  /** Sends a message again where it failed, or to one endpoint. */
  resend(
    messageId: string,
    body: RelayMessageResendBody = {},
    options?: ChangeOptions,
  ): Answers<"relay.messages.resend"> {
    return this.api.call("relay.messages.resend", { params: { message_id: messageId }, body }, options);
  }
}

/** The schedules of a project. */
export class RelaySchedules {
  constructor(private readonly api: Api) {}

  /** Sends a webhook at the times of a cron expression. */
  create(body: ScheduleBody, options?: ChangeOptions): Answers<"relay.schedules.create"> {
    return this.api.call("relay.schedules.create", { body }, options);
  }

  /** The schedules, newest first, without their payloads. */
  list(
    query: QueryOf<"relay.schedules.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"relay.schedules.list", "schedules"> {
    return this.api.list("relay.schedules.list", "schedules", { query }, options);
  }

  /** A schedule with its next five runs. */
  get(scheduleId: string, options?: RequestOptions): Answers<"relay.schedules.read"> {
    return this.api.call("relay.schedules.read", { params: { schedule_id: scheduleId } }, options);
  }

  /** Changes a schedule; what is left out stays. */
  update(
    scheduleId: string,
    body: ScheduleUpdateBody,
    options?: ChangeOptions,
  ): Answers<"relay.schedules.update"> {
    return this.api.call("relay.schedules.update", { params: { schedule_id: scheduleId }, body }, options);
  }

  /** Deletes a schedule; deliveries that its runs have made stay. */
  delete(scheduleId: string, options?: ChangeOptions): Answers<"relay.schedules.delete"> {
    return this.api.call("relay.schedules.delete", { params: { schedule_id: scheduleId } }, options);
  }

  /** Runs a schedule now, beside its times. */
  run(scheduleId: string, options?: ChangeOptions): Answers<"relay.schedules.run"> {
    return this.api.call("relay.schedules.run", { params: { schedule_id: scheduleId } }, options);
  }
}
