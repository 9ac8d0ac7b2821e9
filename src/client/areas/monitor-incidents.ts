import type { Answers, Api, ListOf, PageQuery, QueryOf } from "../api.ts";
import type {
  ChannelCreateBody,
  ChannelPatch,
  IncidentCreateBody,
  IncidentPatch,
  IncidentUpdateBody,
} from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Incidents, opened by monitors or manually. */
export class MonitorIncidents {
  constructor(private readonly api: Api) {}

  /** Creates an incident. Monitors open and resolve their own. */
  create(body: IncidentCreateBody, options?: ChangeOptions): Answers<"monitors.incidents.create"> {
    return this.api.call("monitors.incidents.create", { body }, options);
  }

  /** Lists incidents, newest first. */
  list(
    query: QueryOf<"monitors.incidents.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"monitors.incidents.list", "incidents"> {
    return this.api.list("monitors.incidents.list", "incidents", { query }, options);
  }

  /** Returns an incident with its updates. */
  get(incidentId: string, options?: RequestOptions): Answers<"monitors.incidents.read"> {
    return this.api.call("monitors.incidents.read", { params: { incident_id: incidentId } }, options);
  }

  /** Updates the title, and whether status pages show the incident. */
  update(
    incidentId: string,
    body: IncidentPatch,
    options?: ChangeOptions,
  ): Answers<"monitors.incidents.change"> {
    return this.api.call("monitors.incidents.change", { params: { incident_id: incidentId }, body }, options);
  }

  /** Acknowledges an incident, which stops the repeats of its alert. */
  acknowledge(incidentId: string, options?: ChangeOptions): Answers<"monitors.incidents.acknowledge"> {
    return this.api.call("monitors.incidents.acknowledge", { params: { incident_id: incidentId } }, options);
  }

  /** Posts an update; `resolved` resolves a manual incident. @throws NinefoldError `conflict` */
  say(
    incidentId: string,
    body: IncidentUpdateBody,
    options?: ChangeOptions,
  ): Answers<"monitors.incidents.update"> {
    return this.api.call("monitors.incidents.update", { params: { incident_id: incidentId }, body }, options);
  }
}

/** Notification channels. */
export class MonitorChannels {
  constructor(private readonly api: Api) {}

  /** Creates a channel. */
  create(body: ChannelCreateBody, options?: ChangeOptions): Answers<"monitors.channels.create"> {
    return this.api.call("monitors.channels.create", { body }, options);
  }

  /** Lists channels, newest first. */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"monitors.channels.list", "channels"> {
    return this.api.list("monitors.channels.list", "channels", { query }, options);
  }

  /** Returns a channel without its secrets. */
  get(channelId: string, options?: RequestOptions): Answers<"monitors.channels.read"> {
    return this.api.call("monitors.channels.read", { params: { channel_id: channelId } }, options);
  }

  /** Updates a channel. Omitted fields stay unchanged; `config` is replaced as a whole. */
  update(
    channelId: string,
    body: ChannelPatch,
    options?: ChangeOptions,
  ): Answers<"monitors.channels.change"> {
    return this.api.call("monitors.channels.change", { params: { channel_id: channelId }, body }, options);
  }

  /** Deletes a channel. */
  delete(channelId: string, options?: ChangeOptions): Answers<"monitors.channels.delete"> {
    return this.api.call("monitors.channels.delete", { params: { channel_id: channelId } }, options);
  }

  /** Sends one test notification and returns its result. */
  test(channelId: string, options?: ChangeOptions): Answers<"monitors.channels.test"> {
    return this.api.call("monitors.channels.test", { params: { channel_id: channelId } }, options);
  }
}
