# Written by `bun codegen/main.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
"""Methods that send the request of one operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, Union, cast, overload

from ._api import Api, Methods, Pages, fields_of
from ._options import DEFAULT, Default

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import models


class PortalSecret(Methods):
    """The signing secret of an endpoint, for a client whose key is the token of a portal link."""

    def reveal(
        self,
        endpoint_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.RelayEndpointSecret:
        """Reveal the signing secret of an endpoint.

        For a customer that has lost the secret or sets up another receiver. The secret does not change. Recorded in
        the audit log with the customer as the actor.
        """
        response = self._api.call(
            "POST /v1/relay/portal/endpoints/{endpoint_id}/secret",
            {"endpoint_id": endpoint_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.RelayEndpointSecret", response)

    def rotate(
        self,
        endpoint_id: str,
        body: Optional[models.PortalRotateBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.PortalRotateBody]
    ) -> models.RelayEndpointSecretRotated:
        """Rotate the signing secret of an endpoint.

        For ``grace_hours``, messages are also signed with the old secret. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/relay/portal/endpoints/{endpoint_id}/secret/rotate",
            {"endpoint_id": endpoint_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.RelayEndpointSecretRotated", response)


class PortalEndpoints(Methods):
    """The endpoints of a customer, for a client whose key is the token of a portal link."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: The signing secret of an endpoint, for a client whose key is the token of a portal link.
        self.secret = PortalSecret(api)

    @overload
    def create(
        self,
        body: models.PortalEndpointBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.PortalEndpointCreated: ...
    @overload
    def create(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.PortalEndpointBody]
    ) -> models.PortalEndpointCreated: ...
    def create(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Any
    ) -> models.PortalEndpointCreated:
        """Add an endpoint of the customer.

        This response contains the signing secret. A customer can have 20 endpoints, including those that the account
        created and those deleted in the last 24 hours. No e-mail is sent to the account when it is disabled.
        """
        response = self._api.call(
            "POST /v1/relay/portal/endpoints",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.PortalEndpointCreated", response)

    def delete(self, endpoint_id: str, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> None:
        """Delete an endpoint of the customer. Cancels its pending deliveries."""
        response = self._api.call(
            "DELETE /v1/relay/portal/endpoints/{endpoint_id}",
            {"endpoint_id": endpoint_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("None", response)

    def get(
        self,
        endpoint_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.PortalEndpointRead:
        """Get an endpoint of the customer with its health and counts.

        Shows the customer whether its endpoint is healthy, paused or disabled, and why. An endpoint of another
        customer is 404.
        """
        response = self._api.call(
            "GET /v1/relay/portal/endpoints/{endpoint_id}",
            {"endpoint_id": endpoint_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.PortalEndpointRead", response)

    def list(
        self,
        query: Optional[models.RelayPortalEndpointsListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.RelayPortalEndpointsListQuery]
    ) -> Pages[models.PortalEndpoint, models.PortalEndpointPage]:
        """List the customer's endpoints, newest first.

        Includes endpoints that the account created for the customer. Headers, filters, names and metadata, which only
        the account sets, are not returned.
        """
        response = self._api.pages(
            "GET /v1/relay/portal/endpoints",
            "endpoints",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.PortalEndpoint, models.PortalEndpointPage]", response)

    @overload
    def recover(
        self,
        endpoint_id: str,
        body: models.PortalRecoverBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> Union[models.RelayResendMatched, models.RelayResendStarted]: ...
    @overload
    def recover(
        self,
        endpoint_id: str,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.PortalRecoverBody]
    ) -> Union[models.RelayResendMatched, models.RelayResendStarted]: ...
    def recover(
        self,
        endpoint_id: str,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Any
    ) -> Union[models.RelayResendMatched, models.RelayResendStarted]:
        """Send an endpoint of the customer the messages that it missed.

        Sends every message of a time that matches the endpoint now and was never delivered to it: it was disabled,
        created later, or the delivery failed. Oldest first, each once, for 1 credit of the account when it is sent.
        An endpoint has one recovery per hour, of at most 1,000 messages. Progress and stop:
        ``/v1/relay/portal/resends/{resend_id}``.
        """
        response = self._api.call(
            "POST /v1/relay/portal/endpoints/{endpoint_id}/recover",
            {"endpoint_id": endpoint_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Union[models.RelayResendMatched, models.RelayResendStarted]", response)

    def test(
        self,
        endpoint_id: str,
        body: Optional[models.PortalTestBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.PortalTestBody]
    ) -> models.RelayEndpointTested:
        """Send a test event to an endpoint of the customer.

        The account pays for it, and it counts towards the 20 requests with costs that a customer has per minute. The
        event is sent regardless of the endpoint's types; a disabled endpoint is 409. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/relay/portal/endpoints/{endpoint_id}/test",
            {"endpoint_id": endpoint_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.RelayEndpointTested", response)

    def update(
        self,
        endpoint_id: str,
        body: Optional[models.PortalEndpointPatch] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.PortalEndpointPatch]
    ) -> models.PortalEndpoint:
        """Update an endpoint of the customer.

        Omitted fields keep their values. ``state: live`` also enables a disabled endpoint. The URL of an endpoint
        with headers of the account can only be changed within its origin (else 409).
        """
        response = self._api.call(
            "PATCH /v1/relay/portal/endpoints/{endpoint_id}",
            {"endpoint_id": endpoint_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.PortalEndpoint", response)


class PortalEventTypes(Methods):
    """The event types that a portal link offers."""

    def list(
        self,
        query: Optional[models.RelayPortalEventTypesListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.RelayPortalEventTypesListQuery]
    ) -> Pages[models.PortalEventType, models.PortalEventTypePage]:
        """List the event types that the link offers, newest first.

        Only types that the link names in ``event_types``, wildcards included, and that the account describes. A page
        with long schemas may have fewer items than ``limit``, and still a ``cursor``.
        """
        response = self._api.pages(
            "GET /v1/relay/portal/event-types",
            "event_types",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.PortalEventType, models.PortalEventTypePage]", response)


class PortalDeliveries(Methods):
    """The deliveries of a customer, for a client whose key is the token of a portal link."""

    def body(
        self,
        relay_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.RelaySentBody:
        """Get the body that a delivery of the customer sends.

        The signature covers exactly these bytes. Stored as long as the payload and the endpoint of the delivery.
        """
        response = self._api.call(
            "GET /v1/relay/portal/deliveries/{relay_id}/body",
            {"relay_id": relay_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.RelaySentBody", response)

    def get(
        self,
        relay_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.PortalDelivery:
        """Get a delivery of the customer with its payload and attempts.

        Shows the customer each attempt with the start of its own response, up to 4 KiB. ``payload`` is null once it
        is deleted.
        """
        response = self._api.call(
            "GET /v1/relay/portal/deliveries/{relay_id}",
            {"relay_id": relay_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.PortalDelivery", response)

    def list(
        self,
        query: Optional[models.RelayPortalDeliveriesListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.RelayPortalDeliveriesListQuery]
    ) -> Pages[models.PortalDeliveryItem, models.PortalDeliveryPage]:
        """List the customer's deliveries, newest first.

        Only deliveries of messages to this customer, including those to endpoints that it has deleted. Finished
        deliveries are listed for 7 days.
        """
        response = self._api.pages(
            "GET /v1/relay/portal/deliveries",
            "deliveries",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.PortalDeliveryItem, models.PortalDeliveryPage]", response)

    def resend(
        self,
        relay_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.RelayResent:
        """Resend a delivery of the customer.

        Sends a delivered or failed delivery immediately, under the same ids and with all its retries. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/relay/portal/deliveries/{relay_id}/resend",
            {"relay_id": relay_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.RelayResent", response)


class MonitorsPagesSubscribers(Methods):
    """Methods of ``nf.monitors.pages.subscribers``."""

    @overload
    def import_(
        self,
        page_id: str,
        body: models.StatusPageSubscribersImportBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.StatusPageSubscribersImported: ...
    @overload
    def import_(
        self,
        page_id: str,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.StatusPageSubscribersImportBody]
    ) -> models.StatusPageSubscribersImported: ...
    def import_(
        self,
        page_id: str,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.StatusPageSubscribersImported:
        """Import confirmed subscribers of another status page.

        Only for addresses whose owners have confirmed elsewhere that they want e-mails about incidents: they are not
        asked again, get no e-mail now, and can unsubscribe by the link in each. At most 200 in a request. Costs 1
        credit.
        """
        response = self._api.call(
            "POST /v1/pulse/pages/{page_id}/subscribers/import",
            {"page_id": page_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.StatusPageSubscribersImported", response)


class MonitorIncidents(Methods):
    """Incidents, opened by monitors or manually."""

    def acknowledge(
        self,
        incident_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.Incident:
        """Acknowledge an incident.

        Stops the repeated alerts of the incident and notifies channels once. Acknowledging it again changes nothing.
        Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/pulse/incidents/{incident_id}/acknowledge",
            {"incident_id": incident_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Incident", response)

    @overload
    def create(
        self,
        body: models.IncidentCreateBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.Incident: ...
    @overload
    def create(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.IncidentCreateBody]
    ) -> models.Incident: ...
    def create(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.Incident:
        """Create an incident.

        Monitors open and resolve their incidents automatically; this creates a manual one. The states of manual
        monitors follow from it. With ``started_at``, ``resolved_at`` or ``updates`` it is one of the past, of which
        nobody is notified. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/pulse/incidents",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Incident", response)

    @overload
    def create_update(
        self,
        incident_id: str,
        body: models.IncidentUpdateBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.Incident: ...
    @overload
    def create_update(
        self,
        incident_id: str,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.IncidentUpdateBody]
    ) -> models.Incident: ...
    def create_update(
        self,
        incident_id: str,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.Incident:
        """Post an incident update.

        ``resolved`` resolves a manual incident. An automatic incident is resolved by the check that finds its target
        up. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/pulse/incidents/{incident_id}/updates",
            {"incident_id": incident_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Incident", response)

    #: Deprecated: use ``create_update``, which is the same.
    say = create_update

    def get(
        self,
        incident_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.Incident:
        """Get an incident with its updates, its timeline, and what status pages show of it.

        Use it to understand an outage: the timeline has the checks that changed the status and the alerts that were
        sent, with their result. Costs 1 credit.
        """
        response = self._api.call(
            "GET /v1/pulse/incidents/{incident_id}",
            {"incident_id": incident_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Incident", response)

    def list(
        self,
        query: Optional[models.MonitorsIncidentsListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.MonitorsIncidentsListQuery]
    ) -> Pages[models.IncidentSummary, models.IncidentPage]:
        """List incidents, newest first.

        Automatic and manual ones. Resolved incidents are stored for 400 days. Updates and the timeline are only in a
        single incident. Costs 1 credit.
        """
        response = self._api.pages(
            "GET /v1/pulse/incidents",
            "incidents",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.IncidentSummary, models.IncidentPage]", response)

    def snooze(
        self,
        incident_id: str,
        body: Optional[models.IncidentSnoozeBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.IncidentSnoozeBody]
    ) -> models.Incident:
        """Snooze an incident.

        Nobody is notified again of the outage of a monitor for some time: no reminders, steps of escalations and
        repeated webhooks. If the target is still down then, its channels are notified. Snoozing it again replaces the
        time. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/pulse/incidents/{incident_id}/snooze",
            {"incident_id": incident_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Incident", response)

    def update(
        self,
        incident_id: str,
        body: Optional[models.IncidentPatch] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.IncidentPatch]
    ) -> models.Incident:
        """Update an incident.

        Changes its title, its impact, its visibility, and the monitors that a manual incident affects. Post the
        progress as an update. Costs 1 credit.
        """
        response = self._api.call(
            "PATCH /v1/pulse/incidents/{incident_id}",
            {"incident_id": incident_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Incident", response)


class MonitorChannels(Methods):
    """Notification channels."""

    @overload
    def create(
        self,
        body: models.ChannelCreateBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.Channel: ...
    @overload
    def create(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.ChannelCreateBody]
    ) -> models.Channel: ...
    def create(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.Channel:
        """Create a notification channel.

        Tier starter and higher; the kind ``email`` requires the tier pro. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/pulse/channels",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Channel", response)

    def delete(
        self,
        channel_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.ChannelDeleted:
        """Delete a notification channel.

        Monitors that used it notify their other channels, and nobody if it was the only one: check their ``channels``
        first. Costs 1 credit.
        """
        response = self._api.call(
            "DELETE /v1/pulse/channels/{channel_id}",
            {"channel_id": channel_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ChannelDeleted", response)

    def get(
        self,
        channel_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.Channel:
        """Get a notification channel.

        Use it to see why alerts do not arrive: ``last_error`` is the reason the last message failed. Secrets in
        ``config`` are returned as ``[secret]``, and an update of ``config`` must contain them again. Costs 1 credit.
        """
        response = self._api.call(
            "GET /v1/pulse/channels/{channel_id}",
            {"channel_id": channel_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Channel", response)

    def list(
        self,
        query: Optional[models.MonitorsChannelsListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.MonitorsChannelsListQuery]
    ) -> Pages[models.Channel, models.ChannelPage]:
        """List notification channels, newest first.

        ``last_error`` says why the last message to a channel could not be delivered. Secrets in ``config`` are
        returned as ``[secret]``. Costs 1 credit.
        """
        response = self._api.pages(
            "GET /v1/pulse/channels",
            "channels",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.Channel, models.ChannelPage]", response)

    def test(
        self,
        channel_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.ChannelTested:
        """Send a test message to a channel. The message is sent immediately, without retries. Costs 1 credit."""
        response = self._api.call(
            "POST /v1/pulse/channels/{channel_id}/test",
            {"channel_id": channel_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ChannelTested", response)

    def update(
        self,
        channel_id: str,
        body: Optional[models.ChannelPatch] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.ChannelPatch]
    ) -> models.Channel:
        """Update a notification channel.

        Omitted fields stay unchanged. ``config`` is replaced as a whole, including its secrets. Costs 1 credit.
        """
        response = self._api.call(
            "PATCH /v1/pulse/channels/{channel_id}",
            {"channel_id": channel_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Channel", response)


class MonitorMaintenance(Methods):
    """Maintenance windows, in which alerts of their monitors are suppressed."""

    @overload
    def create(
        self,
        body: models.MaintenanceCreateBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.Maintenance: ...
    @overload
    def create(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.MaintenanceCreateBody]
    ) -> models.Maintenance: ...
    def create(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.Maintenance:
        """Create a maintenance window.

        A single window from ``starts_at`` to ``ends_at``, or recurring windows by ``schedule`` and ``duration_ms``.
        Failures during a window cause no alerts. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/pulse/maintenance",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Maintenance", response)

    def delete(
        self,
        maintenance_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.MonitorDeleted:
        """Delete a maintenance window. An open window ends immediately. Costs 1 credit."""
        response = self._api.call(
            "DELETE /v1/pulse/maintenance/{maintenance_id}",
            {"maintenance_id": maintenance_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.MonitorDeleted", response)

    def get(
        self,
        maintenance_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.Maintenance:
        """Get a maintenance entry.

        ``status`` follows the clock. For recurring windows, the times are those of the current or the next window.
        Costs 1 credit.
        """
        response = self._api.call(
            "GET /v1/pulse/maintenance/{maintenance_id}",
            {"maintenance_id": maintenance_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Maintenance", response)

    def list(
        self,
        query: Optional[models.MonitorsMaintenanceListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.MonitorsMaintenanceListQuery]
    ) -> Pages[models.Maintenance, models.MaintenancePage]:
        """List maintenance, newest first.

        Includes past windows, at most 100 in a project. ``status`` selects those in progress, for example. Costs 1
        credit.
        """
        response = self._api.pages(
            "GET /v1/pulse/maintenance",
            "maintenance",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.Maintenance, models.MaintenancePage]", response)

    def update(
        self,
        maintenance_id: str,
        body: Optional[models.MaintenanceUpdateBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.MaintenanceUpdateBody]
    ) -> models.Maintenance:
        """Update a maintenance window.

        Omitted fields stay unchanged. A single window cannot become recurring, or the reverse. Costs 1 credit.
        """
        response = self._api.call(
            "PATCH /v1/pulse/maintenance/{maintenance_id}",
            {"maintenance_id": maintenance_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Maintenance", response)


class MonitorProbes(Methods):
    """Probes, which check monitors from other machines."""

    @overload
    def create(
        self,
        body: models.ProbeCreateBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.Probe: ...
    @overload
    def create(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.ProbeCreateBody]
    ) -> models.Probe: ...
    def create(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.Probe:
        """Create a probe.

        The response has the token with which ``ninefold probe`` calls the server. It is shown once. Tier starter and
        higher. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/pulse/probes",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Probe", response)

    def delete(
        self,
        probe_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.ProbeDeleted:
        """Delete a probe.

        Its token stops working immediately. It leaves the ``probes`` of its monitors; the only probe of a monitor
        cannot be deleted. Costs 1 credit.
        """
        response = self._api.call(
            "DELETE /v1/pulse/probes/{probe_id}",
            {"probe_id": probe_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ProbeDeleted", response)

    def get(self, probe_id: str, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.Probe:
        """Get a probe.

        Shows when the probe was last seen, and whether it is online. The token is not returned: it is shown once,
        when the probe is created. Costs 1 credit.
        """
        response = self._api.call(
            "GET /v1/pulse/probes/{probe_id}",
            {"probe_id": probe_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Probe", response)

    def list(
        self,
        query: Optional[models.MonitorsProbesListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.MonitorsProbesListQuery]
    ) -> Pages[models.Probe, models.ProbePage]:
        """List probes, newest first.

        Use it to see which probes are online. The tokens are not returned. The server itself, ``local``, is not
        listed. Costs 1 credit.
        """
        response = self._api.pages(
            "GET /v1/pulse/probes",
            "probes",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.Probe, models.ProbePage]", response)

    def update(
        self,
        probe_id: str,
        body: Optional[models.ProbePatch] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.ProbePatch]
    ) -> models.Probe:
        """Update a probe.

        Only the ``location``, which people read, can be changed. The name is fixed, because monitors refer to it:
        create another probe instead. Costs 1 credit.
        """
        response = self._api.call(
            "PATCH /v1/pulse/probes/{probe_id}",
            {"probe_id": probe_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Probe", response)


class StatusPages(Methods):
    """Status pages, visible to anyone at the ``url`` of the page."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: Methods of `nf.monitors.pages.subscribers`.
        self.subscribers = MonitorsPagesSubscribers(api)

    @overload
    def create(
        self,
        body: models.StatusPageCreateBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.StatusPage: ...
    @overload
    def create(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.StatusPageCreateBody]
    ) -> models.StatusPage: ...
    def create(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.StatusPage:
        """Create a public status page.

        The page is public at ``/status/{slug}`` immediately, unless ``published`` is false. The slug is unique on the
        server, not only in your project. Visitors are free of charge. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/pulse/pages",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.StatusPage", response)

    def delete(
        self,
        page_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.StatusPageDeleted:
        """Delete a status page.

        The public address is 404 immediately, and all subscribers are deleted. The monitors and incidents stay. To
        hide a page for some time, set ``published`` to false. Costs 1 credit.
        """
        response = self._api.call(
            "DELETE /v1/pulse/pages/{page_id}",
            {"page_id": page_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.StatusPageDeleted", response)

    def get(
        self,
        page_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.StatusPage:
        """Get a status page's settings.

        For editing the page. What visitors see is at ``/status/{slug}`` and, as JSON, at ``/status/{slug}.json``.
        Monitors that were deleted are not in ``groups``. Costs 1 credit.
        """
        response = self._api.call(
            "GET /v1/pulse/pages/{page_id}",
            {"page_id": page_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.StatusPage", response)

    def list(
        self,
        query: Optional[models.MonitorsPagesListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.MonitorsPagesListQuery]
    ) -> Pages[models.StatusPageSummary, models.StatusPageList]:
        """List status pages, newest first.

        Published and unpublished pages, without their ``groups`` and ``logo``: a single page has them. Costs 1
        credit.
        """
        response = self._api.pages(
            "GET /v1/pulse/pages",
            "pages",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.StatusPageSummary, models.StatusPageList]", response)

    def update(
        self,
        page_id: str,
        body: Optional[models.StatusPageUpdateBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.StatusPageUpdateBody]
    ) -> models.StatusPage:
        """Update a status page.

        Omitted fields stay unchanged. ``published: false`` hides the page without deleting it. Costs 1 credit.
        """
        response = self._api.call(
            "PATCH /v1/pulse/pages/{page_id}",
            {"page_id": page_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.StatusPage", response)


class RelayEndpoints(Methods):
    """Webhook endpoints."""

    @overload
    def create(
        self,
        body: models.RelayEndpointBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.RelayEndpointCreated: ...
    @overload
    def create(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RelayEndpointBody]
    ) -> models.RelayEndpointCreated: ...
    def create(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.RelayEndpointCreated:
        """Create an endpoint for messages.

        Only this response contains the endpoint's signing secret. With a ``signature`` of ``ed25519``, ``public_key``
        replaces it.
        """
        response = self._api.call(
            "POST /v1/relay/endpoints",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelayEndpointCreated", response)

    def delete(
        self,
        endpoint_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> None:
        """Delete an endpoint.

        Cancels its pending deliveries. An endpoint that is a target of a bucket cannot be deleted: change the bucket
        first.
        """
        response = self._api.call(
            "DELETE /v1/relay/endpoints/{endpoint_id}",
            {"endpoint_id": endpoint_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("None", response)

    def get(
        self,
        endpoint_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.RelayEndpoint:
        """Get an endpoint with its health and counts.

        Use it to see why a customer receives nothing: ``health`` says whether the circuit breaker is open or the
        endpoint is disabled, and why. The signing secret is not returned.
        """
        response = self._api.call(
            "GET /v1/relay/endpoints/{endpoint_id}",
            {"endpoint_id": endpoint_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.RelayEndpoint", response)

    def list(
        self,
        query: Optional[models.RelayEndpointsListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.RelayEndpointsListQuery]
    ) -> Pages[models.RelayEndpointItem, models.RelayEndpointPage]:
        """List endpoints, newest first.

        Lists your own endpoints and those of all customers: ``owner_id`` selects one customer. ``state`` finds
        disabled endpoints, which receive no messages.
        """
        response = self._api.pages(
            "GET /v1/relay/endpoints",
            "endpoints",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.RelayEndpointItem, models.RelayEndpointPage]", response)

    def preview(
        self,
        endpoint_id: str,
        body: Optional[models.RelayPreviewBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RelayPreviewBody]
    ) -> models.RelayPreview:
        """Preview the body that an endpoint receives.

        Makes the body of a message by the endpoint's ``template``, or by one to try, and sends nothing. Give
        ``event_type`` and ``payload``, or the ``message_id`` of a stored message.
        """
        response = self._api.call(
            "POST /v1/relay/endpoints/{endpoint_id}/preview",
            {"endpoint_id": endpoint_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelayPreview", response)

    @overload
    def recover(
        self,
        endpoint_id: str,
        body: models.RelayRecoverBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> Union[models.RelayResendMatched, models.RelayResendStarted]: ...
    @overload
    def recover(
        self,
        endpoint_id: str,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RelayRecoverBody]
    ) -> Union[models.RelayResendMatched, models.RelayResendStarted]: ...
    def recover(
        self,
        endpoint_id: str,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> Union[models.RelayResendMatched, models.RelayResendStarted]:
        """Send an endpoint the messages that it missed.

        Sends every message of a time that matches the endpoint now and was never delivered to it: it was disabled,
        created later, or the delivery failed. Oldest first, each once, for 1 credit when it is sent. Progress and
        stop: ``/v1/relay/resends/{resend_id}``.
        """
        response = self._api.call(
            "POST /v1/relay/endpoints/{endpoint_id}/recover",
            {"endpoint_id": endpoint_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("Union[models.RelayResendMatched, models.RelayResendStarted]", response)

    def rotate_secret(
        self,
        endpoint_id: str,
        body: Optional[models.RelayEndpointSecretRotateBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RelayEndpointSecretRotateBody]
    ) -> models.RelayEndpointSecretRotated:
        """Rotate an endpoint's signing secret.

        For ``grace_hours``, messages are also signed with the old secret; by ``hmac-*``, only with the one that
        ``signature.grace`` selects. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/relay/endpoints/{endpoint_id}/secret/rotate",
            {"endpoint_id": endpoint_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelayEndpointSecretRotated", response)

    def test(
        self,
        endpoint_id: str,
        body: Optional[models.RelayEndpointTestBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RelayEndpointTestBody]
    ) -> models.RelayEndpointTested:
        """Send a test event to an endpoint.

        Sends the event regardless of the endpoint's types and filter. Without a ``payload``, the example of the event
        type is sent. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/relay/endpoints/{endpoint_id}/test",
            {"endpoint_id": endpoint_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelayEndpointTested", response)

    def update(
        self,
        endpoint_id: str,
        body: Optional[models.RelayEndpointPatch] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RelayEndpointPatch]
    ) -> models.RelayEndpointItem:
        """Update an endpoint.

        Omitted fields keep their values. ``state: live`` also enables a disabled endpoint and closes its breaker.
        Without the scope ``*``, a ``url`` of another origin requires the ``headers`` again (else 409).
        """
        response = self._api.call(
            "PATCH /v1/relay/endpoints/{endpoint_id}",
            {"endpoint_id": endpoint_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelayEndpointItem", response)


class RelayEventTypes(Methods):
    """Types of messages, with their schemas."""

    def delete(
        self,
        name: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> None:
        """Archive an event type.

        Its messages are sent as before, and not checked any more; the portal does not show it. A ``PUT`` brings it
        back. The types that were archived first are removed when there are more than the tier allows.
        """
        response = self._api.call(
            "DELETE /v1/relay/event-types/{name}",
            {"name": name},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("None", response)

    def get(
        self,
        name: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.RelayEventType:
        """Get an event type. Also returns an archived one. ``invalid_24h`` shows whether its messages fit the schema."""
        response = self._api.call(
            "GET /v1/relay/event-types/{name}",
            {"name": name},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.RelayEventType", response)

    @overload
    def import_(
        self,
        body: models.RelayEventTypesImportBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.RelayEventTypesImported: ...
    @overload
    def import_(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RelayEventTypesImportBody]
    ) -> models.RelayEventTypesImported: ...
    def import_(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.RelayEventTypesImported:
        """Import event types from an OpenAPI document.

        Takes description, schema and example of each webhook from the JSON body of its ``post``. References are
        resolved within the document. ``enforce`` and archived types stay as they are. What cannot be imported is
        listed with a reason.
        """
        response = self._api.call(
            "POST /v1/relay/event-types/import",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelayEventTypesImported", response)

    def list(
        self,
        query: Optional[models.RelayEventTypesListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.RelayEventTypesListQuery]
    ) -> Pages[models.RelayEventType, models.RelayEventTypePage]:
        """List event types, newest first.

        Use it for a catalogue of your messages. A page with long schemas may have fewer items than ``limit``, and
        still a ``cursor``.
        """
        response = self._api.pages(
            "GET /v1/relay/event-types",
            "event_types",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.RelayEventType, models.RelayEventTypePage]", response)

    def save(
        self,
        name: str,
        body: Optional[models.RelayEventTypeBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RelayEventTypeBody]
    ) -> models.RelayEventType:
        """Create or replace an event type.

        Describes the messages with this ``event_type``: for your customers in the portal, and with a ``schema`` that
        their payloads are checked by. Omitted fields get their defaults. An archived type comes back.
        """
        response = self._api.call(
            "PUT /v1/relay/event-types/{name}",
            {"name": name},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelayEventType", response)


class RelayMessages(Methods):
    """Messages to all subscribed endpoints."""

    def get(
        self,
        message_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.RelayMessage:
        """Get a message with its deliveries.

        Shows which endpoints the message went to, and how each delivery ended. The payload is null once its retention
        has passed, 7 days by default.
        """
        response = self._api.call(
            "GET /v1/relay/messages/{message_id}",
            {"message_id": message_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.RelayMessage", response)

    def list(
        self,
        query: Optional[models.RelayMessagesListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.RelayMessagesListQuery]
    ) -> Pages[models.RelayMessageItem, models.RelayMessagePage]:
        """List messages, newest first.

        Use it to find the ``message_id`` of a message to resend. Lists have no payloads and no deliveries: a single
        message has them.
        """
        response = self._api.pages(
            "GET /v1/relay/messages",
            "messages",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.RelayMessageItem, models.RelayMessagePage]", response)

    def resend(
        self,
        message_id: str,
        body: Optional[models.RelayMessageResendBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RelayMessageResendBody]
    ) -> models.RelayMessageResent:
        """Resend a message to endpoints where it failed.

        Costs 1 credit for each delivery. With ``endpoint_id``, sends to that endpoint, whether the delivery failed or
        not, and also if it has none because the endpoint was disabled, did not match, or was created later.
        """
        response = self._api.call(
            "POST /v1/relay/messages/{message_id}/resend",
            {"message_id": message_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelayMessageResent", response)

    @overload
    def send(
        self,
        body: models.RelayMessageBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> Union[models.RelayMessageDeduplicated, models.RelayMessageSent]: ...
    @overload
    def send(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RelayMessageBody]
    ) -> Union[models.RelayMessageDeduplicated, models.RelayMessageSent]: ...
    def send(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> Union[models.RelayMessageDeduplicated, models.RelayMessageSent]:
        """Send a message to the matching endpoints.

        Costs 1 credit, and 1 for each delivery. Either all deliveries are scheduled, or none.
        """
        response = self._api.call(
            "POST /v1/relay/messages",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("Union[models.RelayMessageDeduplicated, models.RelayMessageSent]", response)

    def send_batch(
        self,
        messages: List[models.RelayMessageBody],
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.RelayMessagesSent:
        """Send up to 100 messages.

        Equivalent to single requests, but either all messages are sent, or none. Costs their sum. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/relay/messages/batch",
            body={"messages": messages},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelayMessagesSent", response)

    #: Deprecated: use ``send_batch``, which is the same.
    send_many = send_batch


class RelayPortal(Methods):
    """Links by which your customers manage their own endpoints."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: The endpoints of a customer, for a client whose key is the token of a portal link.
        self.endpoints = PortalEndpoints(api)
        #: The event types that a portal link offers.
        self.event_types = PortalEventTypes(api)
        #: The deliveries of a customer, for a client whose key is the token of a portal link.
        self.deliveries = PortalDeliveries(api)

    @overload
    def create(
        self,
        body: models.PortalLinkBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.PortalLinkCreated: ...
    @overload
    def create(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.PortalLinkBody]
    ) -> models.PortalLinkCreated: ...
    def create(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.PortalLinkCreated:
        """Create a portal link for a customer.

        With the link, a customer manages the endpoints with its ``owner_id``: it adds up to 20, tests them, and sees
        their secrets and deliveries. Your key must have the scopes ``relay:read`` and ``relay:write``. The link gives
        no other rights, and works as long as your key does. A customer has at most 100 links: a new one revokes the
        oldest. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/relay/portal",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.PortalLinkCreated", response)

    def get(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.PortalLink:
        """Get the portal link of this request.

        The first request of a page of your own: shows which customer the token is for, and when it expires. 401 means
        that the customer needs a new link.
        """
        response = self._api.call(
            "GET /v1/relay/portal",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.PortalLink", response)

    def get_resend(
        self,
        resend_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.PortalResend:
        """Get the progress of a recovery that the customer started.

        Only recoveries that were started with the links of this customer; every other id is 404.
        """
        response = self._api.call(
            "GET /v1/relay/portal/resends/{resend_id}",
            {"resend_id": resend_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.PortalResend", response)

    #: Deprecated: use ``get_resend``, which is the same.
    resend_progress = get_resend

    @overload
    def revoke(
        self,
        body: models.PortalLinksRevokeBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.PortalLinksRevoked: ...
    @overload
    def revoke(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.PortalLinksRevokeBody]
    ) -> models.PortalLinksRevoked: ...
    def revoke(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.PortalLinksRevoked:
        """Revoke the portal links of a customer. Applies from the next request of the page."""
        response = self._api.call(
            "POST /v1/relay/portal/revoke",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.PortalLinksRevoked", response)

    def stop_resend(
        self,
        resend_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.PortalResend:
        """Stop a recovery that the customer started.

        What was sent stays sent and charged to the account. Stopping a recovery that has ended changes nothing.
        """
        response = self._api.call(
            "DELETE /v1/relay/portal/resends/{resend_id}",
            {"resend_id": resend_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.PortalResend", response)


class RelaySchedules(Methods):
    """Recurring webhooks, by cron expression."""

    @overload
    def create(
        self,
        body: models.ScheduleBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.Schedule: ...
    @overload
    def create(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.ScheduleBody]
    ) -> models.Schedule: ...
    def create(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.Schedule:
        """Create a schedule that sends a webhook at the times of a cron expression.

        Each run sends a delivery and costs 1 credit. With ``event_type`` it sends a message, which costs 1 more
        credit for each endpoint.
        """
        response = self._api.call(
            "POST /v1/relay/schedules",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Schedule", response)

    def delete(
        self,
        schedule_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> None:
        """Delete a schedule. Deliveries of earlier runs are not affected."""
        response = self._api.call(
            "DELETE /v1/relay/schedules/{schedule_id}",
            {"schedule_id": schedule_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("None", response)

    def get(
        self,
        schedule_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.Schedule:
        """Get a schedule with its next runs.

        Use it to check a cron expression and a time zone: ``next_runs`` has the next five times. The runs themselves
        are deliveries with this ``schedule_id``.
        """
        response = self._api.call(
            "GET /v1/relay/schedules/{schedule_id}",
            {"schedule_id": schedule_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Schedule", response)

    def list(
        self,
        query: Optional[models.RelaySchedulesListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.RelaySchedulesListQuery]
    ) -> Pages[models.ScheduleItem, models.SchedulePage]:
        """List schedules, newest first.

        Lists omit ``payload`` and ``next_runs``. To find a schedule by its name, use ``name``: the list then has one
        item or none.
        """
        response = self._api.pages(
            "GET /v1/relay/schedules",
            "schedules",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.ScheduleItem, models.SchedulePage]", response)

    def run(
        self,
        schedule_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.ScheduleRun:
        """Run a schedule now, in addition to its times.

        For tests, and to make up for a missed run. Also works while the schedule is paused; the next time does not
        change. With ``event_type`` it costs 1 more credit for each endpoint. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/relay/schedules/{schedule_id}/run",
            {"schedule_id": schedule_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ScheduleRun", response)

    def update(
        self,
        schedule_id: str,
        body: Optional[models.ScheduleUpdateBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.ScheduleUpdateBody]
    ) -> models.Schedule:
        """Update a schedule.

        Omitted fields keep their values. ``state: paused`` stops the runs. Without the scope ``*``, a ``target_url``
        of another origin requires the ``headers`` again (else 409).
        """
        response = self._api.call(
            "PATCH /v1/relay/schedules/{schedule_id}",
            {"schedule_id": schedule_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Schedule", response)


class BucketsMethods(Methods):
    """The buckets of a project."""

    def create(
        self,
        body: Optional[models.BucketCreateBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.BucketCreateBody]
    ) -> models.Bucket:
        """Create a bucket.

        A new bucket is paused unless ``state`` is ``live``: it stores events and forwards none until its state is
        ``live``.
        """
        response = self._api.call(
            "POST /v1/catch/buckets",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Bucket", response)

    def delete(
        self,
        bucket_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> None:
        """Delete a bucket and all its events.

        Requests of the provider are ``ignored`` from then on, with 200, so that it does not report errors. Pending
        events are not forwarded. The events are removed in the background and cannot be restored.
        """
        response = self._api.call(
            "DELETE /v1/catch/buckets/{bucket_id}",
            {"bucket_id": bucket_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("None", response)

    def get(self, bucket_id: str, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.Bucket:
        """Get a bucket.

        Use it to see whether events wait (``events``), and to copy the ``ingest_url`` for the provider. Its host is
        the host of your request, unless the server has a public URL. Secrets are not returned.
        """
        response = self._api.call(
            "GET /v1/catch/buckets/{bucket_id}",
            {"bucket_id": bucket_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Bucket", response)

    def update(
        self,
        bucket_id: str,
        body: Optional[models.BucketUpdateBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.BucketUpdateBody]
    ) -> models.Bucket:
        """Update a bucket.

        Omitted fields keep their values. ``state: live`` forwards pending events in the order of receipt. If events
        contain the ``signing_secret`` itself (as from GitLab), a key without ``catch:read`` must send it with a
        ``target_url`` of another origin or a new target (else 409).
        """
        response = self._api.call(
            "PATCH /v1/catch/buckets/{bucket_id}",
            {"bucket_id": bucket_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Bucket", response)


class EventsMethods(Methods):
    """The events of buckets."""

    @overload
    def acknowledge(
        self,
        bucket_id: str,
        event_id: str,
        body: models.EventAckBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.EventItem: ...
    @overload
    def acknowledge(
        self,
        bucket_id: str,
        event_id: str,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.EventAckBody]
    ) -> models.EventItem: ...
    def acknowledge(
        self,
        bucket_id: str,
        event_id: str,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.EventItem:
        """Acknowledge a fetched event.

        Requires a bucket with ``delivery: pull``. Repeats change nothing; ``failed`` can still become ``delivered``.
        """
        response = self._api.call(
            "POST /v1/catch/{bucket_id}/events/{event_id}/ack",
            {"bucket_id": bucket_id, "event_id": event_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.EventItem", response)

    def confirm(
        self,
        bucket_id: str,
        event_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.EventConfirmed:
        """Confirm the subscription to a topic of Amazon SNS.

        Requests the ``SubscribeURL`` of an event of the type ``SubscriptionConfirmation`` whose signature is valid.
        Free of charge unless it is confirmed. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/catch/{bucket_id}/events/{event_id}/confirm",
            {"bucket_id": bucket_id, "event_id": event_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.EventConfirmed", response)

    def get(
        self,
        bucket_id: str,
        event_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.CaughtEvent:
        """Get an event with its payload and headers.

        Use it to see what the provider sent and how the forwarding went. ``payload`` is parsed for reading;
        ``payload_base64`` has the exact bytes. Headers that may be secret are decrypted for this response. Costs 1
        credit.
        """
        response = self._api.call(
            "GET /v1/catch/{bucket_id}/events/{event_id}",
            {"bucket_id": bucket_id, "event_id": event_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.CaughtEvent", response)

    def list(
        self,
        bucket_id: str,
        query: Optional[models.CatchEventsListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.CatchEventsListQuery]
    ) -> Pages[models.EventItem, models.EventPage]:
        """List a bucket's events, newest first.

        With ``q``, ``event_type`` or ``verification`` a page ends after 5000 events or 200 ms, even if it is not
        full, and has ``partial``. Continue with its ``cursor``. Costs 1 credit.
        """
        response = self._api.pages(
            "GET /v1/catch/{bucket_id}/events",
            "events",
            {"bucket_id": bucket_id},
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.EventItem, models.EventPage]", response)

    def replay(
        self,
        bucket_id: str,
        event_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> Union[models.EventReplayed, models.EventReplayQueued]:
        """Replay an event to the target.

        Costs 1 credit if the target responds with 2xx; otherwise free of charge. In a bucket with ``targets`` it
        queues new deliveries, for 1 credit each, and returns 202.
        """
        response = self._api.call(
            "POST /v1/catch/{bucket_id}/events/{event_id}/replay",
            {"bucket_id": bucket_id, "event_id": event_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("Union[models.EventReplayed, models.EventReplayQueued]", response)

    @overload
    def stream(
        self,
        bucket_id: str,
        query: models.CatchStreamQuery,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.EventStreamPage: ...
    @overload
    def stream(
        self,
        bucket_id: str,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.CatchStreamQuery]
    ) -> models.EventStreamPage: ...
    def stream(
        self,
        bucket_id: str,
        query: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Any
    ) -> models.EventStreamPage:
        """Fetch a bucket's events in order, or wait for the next one.

        Returns immediately if there are events after ``after``; otherwise when the next one arrives, or after
        ``wait_ms`` without events. Continue with the ``cursor`` of the response. A response without events is free of
        charge. Costs 1 credit.
        """
        response = self._api.call(
            "GET /v1/catch/{bucket_id}/stream",
            {"bucket_id": bucket_id},
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.EventStreamPage", response)


class Replays(Methods):
    """Replays of many events."""

    def get(
        self,
        bucket_id: str,
        replay_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.CatchReplay:
        """Get the progress of a bulk replay.

        Poll it until ``status`` is no longer ``running``. Replayed events are attempted after they are queued, so
        their own status may change later. Stored for 7 days.
        """
        response = self._api.call(
            "GET /v1/catch/{bucket_id}/replays/{replay_id}",
            {"bucket_id": bucket_id, "replay_id": replay_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.CatchReplay", response)

    def start(
        self,
        bucket_id: str,
        body: Optional[models.CatchReplayBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.CatchReplayBody]
    ) -> Union[models.CatchReplayMatched, models.CatchReplayStarted]:
        """Replay many events to the target.

        Replays events in the order of receipt. Each event that the target accepts costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/catch/{bucket_id}/replays",
            {"bucket_id": bucket_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("Union[models.CatchReplayMatched, models.CatchReplayStarted]", response)

    def stop(
        self,
        bucket_id: str,
        replay_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.CatchReplay:
        """Stop a bulk replay. Events that are already queued are still sent."""
        response = self._api.call(
            "DELETE /v1/catch/{bucket_id}/replays/{replay_id}",
            {"bucket_id": bucket_id, "replay_id": replay_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.CatchReplay", response)


class ReceiptsMethods(Methods):
    """The receipts of the chain of the project."""

    def get(
        self,
        sequence_id: Union[str, int],
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.Receipt:
        """Get a receipt.

        The number is the position in the chain, from 1 without gaps. After a redaction the receipt has
        ``redacted_at`` in place of ``log``, and still verifies.
        """
        response = self._api.call(
            "GET /v1/witness/receipts/{sequence_id}",
            {"sequence_id": sequence_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Receipt", response)

    def list(
        self,
        query: Optional[models.WitnessReceiptsListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.WitnessReceiptsListQuery]
    ) -> Pages[models.Receipt, models.ReceiptPage]:
        """List the project's receipts, newest first.

        With ``field`` and ``value``, only receipts whose log has this value: the field must have been indexed when
        they were logged. A page also ends when its logs exceed 256 KiB.
        """
        response = self._api.pages(
            "GET /v1/witness/receipts",
            "receipts",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.Receipt, models.ReceiptPage]", response)

    @overload
    def redact(
        self,
        sequence_id: Union[str, int],
        body: models.RedactBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.ReceiptRedacted: ...
    @overload
    def redact(
        self,
        sequence_id: Union[str, int],
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RedactBody]
    ) -> models.ReceiptRedacted: ...
    def redact(
        self,
        sequence_id: Union[str, int],
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.ReceiptRedacted:
        """Delete the text of a receipt's log.

        Deletes the log, or the note of a receipt with only a hash, and its indexed values. Hashes, signature and
        checkpoints stay, and the chain is verified as before. A receipt
        ``{"ninefold":"redacted","sequence_id":…,"reason":…}`` logs it. The copy in the configured storage is
        replaced; backups keep the text. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/witness/receipts/{sequence_id}/redact",
            {"sequence_id": sequence_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ReceiptRedacted", response)


class WitnessPeer(Methods):
    """The server as a witness for chains of others."""

    def get(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.PeerIdentity:
        """Get the verifier key of this server as a witness.

        For the operator of a log that this server should cosign: ``vkey`` verifies its cosignatures. 404 unless the
        server has a ``notary.witness_name``.
        """
        response = self._api.call(
            "GET /v1/witness/peer",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.PeerIdentity", response)


class ChainWitnesses(Methods):
    """The witnesses of the chain of the project."""

    def get(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.WitnessList:
        """List the witnesses of the chain with what they have cosigned.

        Use it to see whether witnesses follow the chain: ``cosigned_size`` is the size of the last checkpoint that
        each has cosigned, and ``last_error`` why the last submission failed.
        """
        response = self._api.call(
            "GET /v1/witness/witnesses",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.WitnessList", response)

    @overload
    def set(
        self,
        body: models.WitnessesBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.WitnessList: ...
    @overload
    def set(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.WitnessesBody]
    ) -> models.WitnessList: ...
    def set(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.WitnessList:
        """Set the witnesses of the chain.

        Replaces the list. Each new checkpoint is sent to the witnesses, at most once a minute
        (c2sp.org/tlog-witness). A witness cosigns it only if it continues the checkpoint that it cosigned before. The
        cosignatures are part of the checkpoint.
        """
        response = self._api.call(
            "PUT /v1/witness/witnesses",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.WitnessList", response)


class Storage(Methods):
    """The storage that receipts are copied to."""

    def get(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.ReceiptStorage:
        """Get the storage configuration with masked credentials.

        Use it to check where receipts are copied, and why copies fail. Returns only the ends of the credentials. 404
        without a storage.
        """
        response = self._api.call(
            "GET /v1/witness/config",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.ReceiptStorage", response)

    @overload
    def set(
        self,
        body: models.StorageBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.StorageConfigured: ...
    @overload
    def set(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.StorageBody]
    ) -> models.StorageConfigured: ...
    def set(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.StorageConfigured:
        """Set the storage that receipts are copied to.

        The storage is an S3-compatible server at a public https URL. New receipts and those still buffered are copied
        to ``{prefix}/witness/receipts/{sequence_id}.json``. A project can have 100 destinations over time: a
        destination is a combination of endpoint, bucket and prefix, and each change from one to another counts.
        """
        response = self._api.call(
            "POST /v1/witness/config",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.StorageConfigured", response)

    #: Deprecated: use ``set``, which is the same.
    configure = set


class PeopleIdentities(Methods):
    """Identities of people at OpenID Connect providers."""

    def delete(
        self,
        person_id: str,
        identity_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.Person:
        """Remove an identity of a person.

        The next login with the person's address at that provider links another identity.
        """
        response = self._api.call(
            "DELETE /v1/people/{person_id}/identities/{identity_id}",
            {"person_id": person_id, "identity_id": identity_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Person", response)


class PeopleInvitation(Methods):
    """Invitations of people."""

    def create(
        self,
        person_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.Invitation:
        """Create a new invitation.

        Replaces the previous one. For a person who has lost their passkey, too: its use removes their other passkeys
        and ends their sessions. The link of an active person is returned to owners only; others can have it sent by
        e-mail.
        """
        response = self._api.call(
            "POST /v1/people/{person_id}/invitation",
            {"person_id": person_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Invitation", response)


class PeopleSessions(Methods):
    """Browser sessions of people."""

    def end(
        self,
        person_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.PersonSessionsEnded:
        """End all sessions of a person.

        For a lost laptop or a stolen cookie: the person must log in again everywhere. Keys that they created continue
        to work, and their passkeys stay. 403 for a person with a higher role than yours.
        """
        response = self._api.call(
            "DELETE /v1/people/{person_id}/sessions",
            {"person_id": person_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.PersonSessionsEnded", response)


class AdminAccounts(Methods):
    """All accounts, for the operator."""

    @overload
    def create(
        self,
        body: models.AccountCreateBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.AccountCreated: ...
    @overload
    def create(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.AccountCreateBody]
    ) -> models.AccountCreated: ...
    def create(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.AccountCreated:
        """Create an account.

        Only this response contains the account's platform key; nothing is sent by e-mail. ``balance`` defaults to the
        monthly credits of the tier. An address that another account has, in any case, is 409.
        """
        response = self._api.call(
            "POST /v1/admin/accounts",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.AccountCreated", response)

    def delete(
        self,
        user_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.AccountDeleted:
        """Delete an account with everything in it.

        Keys and sessions of the account, its public pages and everything that runs for it end before the response. A
        background job then removes its data, which a restart continues. The operator's account and the caller's own
        cannot be deleted (409).
        """
        response = self._api.call(
            "DELETE /v1/admin/accounts/{user_id}",
            {"user_id": user_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.AccountDeleted", response)

    def export(self, user_id: str, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> str:
        """Export everything of an account.

        JSON lines: a header (``type`` ``export``), one record per line with its ``type``, and a line with the
        ``type`` ``end`` and the number of records. An export without it is incomplete. Changes during the export may
        be missing.
        """
        response = self._api.call(
            "GET /v1/admin/accounts/{user_id}/export",
            {"user_id": user_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("str", response)

    def list(
        self,
        query: Optional[models.AdminAccountsListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.AdminAccountsListQuery]
    ) -> Pages[models.Account, models.AccountPage]:
        """List accounts, newest first.

        Includes suspended accounts and the operator's own. Keys are not returned: ``reset-key`` creates a new one if
        an account has lost its key.
        """
        response = self._api.pages(
            "GET /v1/admin/accounts",
            "accounts",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.Account, models.AccountPage]", response)

    def reset_key(
        self,
        user_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.ResetPlatformKey:
        """Revoke all platform keys of an account and create a new one.

        For a leaked or lost key. Applies from the next request, including to keys in their grace period. Managed keys
        are not affected. The new key can be rotated immediately.
        """
        response = self._api.call(
            "POST /v1/admin/accounts/{user_id}/reset-key",
            {"user_id": user_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ResetPlatformKey", response)

    def update(
        self,
        user_id: str,
        body: Optional[models.AccountUpdateBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.AccountUpdateBody]
    ) -> models.Account:
        """Update the e-mail address, tier, balance or suspension of an account.

        Omitted fields keep their value. The update applies from the next request.
        """
        response = self._api.call(
            "PATCH /v1/admin/accounts/{user_id}",
            {"user_id": user_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Account", response)


class AdminAudit(Methods):
    """The audit log of all accounts and of the server, for the operator."""

    def export(
        self,
        query: Optional[models.AdminAuditExportQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.AdminAuditExportQuery]
    ) -> str:
        """Download the audit log of all accounts, oldest first.

        At most 1,000,000 entries; one export at a time per account.
        """
        response = self._api.call(
            "GET /v1/admin/audit/export",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("str", response)

    def get(
        self,
        sequence: Union[str, int],
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.AuditEntry:
        """Get an audit log entry of any account.

        Finds entries of all accounts and of the server itself by their number. The entries of a deleted account are
        removed, so they are 404.
        """
        response = self._api.call(
            "GET /v1/admin/audit/{sequence}",
            {"sequence": sequence},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.AuditEntry", response)

    def list(
        self,
        query: Optional[models.AdminAuditListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.AdminAuditListQuery]
    ) -> Pages[models.AuditEntry, models.AuditPage]:
        """List audit log entries of all accounts, newest first.

        Includes entries of the server itself. Each entry was stored in the transaction of its change. A page ends
        after 5,000 scanned entries, even if few of them match the filters, and after 256 KiB of ``before`` and
        ``after``: continue with its ``cursor``.
        """
        response = self._api.pages(
            "GET /v1/admin/audit",
            "entries",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.AuditEntry, models.AuditPage]", response)


class AdminBackups(Methods):
    """The server's backups, for the operator."""

    def create(
        self,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.BackupBegun:
        """Create a backup now.

        Returns as soon as the backup job is stored. The backup runs in a separate process; the list of backups shows
        its state. It counts toward ``backup_keep``.
        """
        response = self._api.call(
            "POST /v1/admin/backups",
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.BackupBegun", response)

    def list(
        self,
        query: Optional[models.AdminBackupsListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.AdminBackupsListQuery]
    ) -> Pages[models.Backup, models.BackupPage]:
        """List backups, newest first.

        Use it to check that backups are made: ``failure`` says why the last one failed, and ``plan.overdue`` whether
        two scheduled times passed without one. Only files in the backup folder count; without a folder ``plan`` is
        null.
        """
        response = self._api.pages(
            "GET /v1/admin/backups",
            "backups",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.Backup, models.BackupPage]", response)


class AdminSettings(Methods):
    """Settings of the server in its database, for the operator."""

    def get(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.ServerSettings:
        """Get the settings of the server.

        Returns the options that can be stored in the database, each with its value and source. What a flag, an
        environment variable or the configuration file sets wins, and cannot be changed here.
        """
        response = self._api.call(
            "GET /v1/admin/settings",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.ServerSettings", response)

    def test_mail(
        self,
        to: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.MailTest:
        """Send a test e-mail. Sends an e-mail once, immediately, and returns what the mail server responded."""
        response = self._api.call(
            "POST /v1/admin/settings/test-mail",
            body={"to": to},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.MailTest", response)

    def update(
        self,
        body: Optional[models.ServerSettingsBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.ServerSettingsBody]
    ) -> models.ServerSettings:
        """Change settings of the server.

        Stores settings in the database, secrets sealed with the master key; null removes a setting. Settings whose
        ``effect`` is ``now`` are effective immediately, others after a restart. All of the request is stored, or
        nothing.
        """
        response = self._api.call(
            "PATCH /v1/admin/settings",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ServerSettings", response)


class FlagsProposals(Methods):
    """Methods of ``nf.flags.proposals``."""

    def approve(
        self,
        flag_key: str,
        proposal_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.FlagProposal:
        """Approve a proposal, which applies the change.

        By somebody other than the proposer: another person, or another key that the same person has not created. A
        key and those that it was rotated to are one.
        """
        response = self._api.call(
            "POST /v1/gate/{flagKey}/proposals/{proposal_id}/approve",
            {"flagKey": flag_key, "proposal_id": proposal_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.FlagProposal", response)

    def create(
        self,
        flag_key: str,
        body: Optional[models.FlagProposalBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.FlagProposalBody]
    ) -> models.FlagProposal:
        """Propose a change of a flag.

        Fields of a save, or ``delete``. The flag need not exist. The change is checked now, and applied when somebody
        else approves it. A change in another way makes the proposal ``outdated``. An equal open proposal of the same
        proposer is returned instead of a second one. A project can have 100 open proposals; the newest 1,000 are
        stored for a year. Costs credits as a save does; the approval is free of charge.
        """
        response = self._api.call(
            "POST /v1/gate/{flagKey}/proposals",
            {"flagKey": flag_key},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.FlagProposal", response)

    def get(
        self,
        flag_key: str,
        proposal_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.FlagProposal:
        """Get a proposal.

        Shows the fields that change, who proposed and who decided. A proposal becomes ``outdated`` as soon as its
        flag changes.
        """
        response = self._api.call(
            "GET /v1/gate/{flagKey}/proposals/{proposal_id}",
            {"flagKey": flag_key, "proposal_id": proposal_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.FlagProposal", response)

    def list(
        self,
        query: Optional[models.GateProposalsListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.GateProposalsListQuery]
    ) -> Pages[models.FlagProposal, models.FlagProposalPage]:
        """List proposals of all flags, newest first.

        Those that wait for a decision have the status ``open``; the decided ones stay for a year, up to 1,000 in all.
        ``before`` and ``after`` have the fields that change. A page also ends when its changes exceed 256 KiB.
        """
        response = self._api.pages(
            "GET /v1/gate/config/proposals",
            "proposals",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.FlagProposal, models.FlagProposalPage]", response)

    def list_of_flag(
        self,
        flag_key: str,
        query: Optional[models.GateProposalsListOfFlagQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.GateProposalsListOfFlagQuery]
    ) -> Pages[models.FlagProposal, models.FlagProposalPage]:
        """List proposals of a flag, newest first. Also of a flag that does not exist."""
        response = self._api.pages(
            "GET /v1/gate/{flagKey}/proposals",
            "proposals",
            {"flagKey": flag_key},
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.FlagProposal, models.FlagProposalPage]", response)

    def reject(
        self,
        flag_key: str,
        proposal_id: str,
        body: Optional[models.FlagProposalRejectBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.FlagProposalRejectBody]
    ) -> models.FlagProposal:
        """Reject a proposal. The flag does not change. Anyone who may write flags can reject, the proposer included."""
        response = self._api.call(
            "POST /v1/gate/{flagKey}/proposals/{proposal_id}/reject",
            {"flagKey": flag_key, "proposal_id": proposal_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.FlagProposal", response)

    def withdraw(
        self,
        flag_key: str,
        proposal_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.FlagProposal:
        """Withdraw a proposal. Closes it without a decision; the flag does not change."""
        response = self._api.call(
            "DELETE /v1/gate/{flagKey}/proposals/{proposal_id}",
            {"flagKey": flag_key, "proposal_id": proposal_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.FlagProposal", response)


class FlagsScheduled(Methods):
    """Methods of ``nf.flags.scheduled``."""

    def cancel(
        self,
        flag_key: str,
        id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.FlagSaved:
        """Cancel a scheduled change of a flag. Also removes a change that failed."""
        response = self._api.call(
            "DELETE /v1/gate/{flagKey}/scheduled/{id}",
            {"flagKey": flag_key, "id": id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.FlagSaved", response)


class KeysRoles(Methods):
    """Methods of ``nf.keys.roles``."""

    def delete(
        self,
        name: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> None:
        """Delete a role.

        Only a role that no key has; keys that are revoked or expired do not count. Remove it from the keys first.
        """
        response = self._api.call(
            "DELETE /v1/keys/roles/{name}",
            {"name": name},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("None", response)

    def get(self, name: str, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.KeyRole:
        """Get a role. Shows the permissions of one role, such as before you change them."""
        response = self._api.call(
            "GET /v1/keys/roles/{name}",
            {"name": name},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.KeyRole", response)

    def list(
        self,
        query: Optional[models.KeysRolesListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.KeysRolesListQuery]
    ) -> Pages[models.KeyRole, models.KeyRolePage]:
        """List roles, newest first.

        Use it to see which permissions keys have by their roles. A page with long permissions may have fewer items
        than ``limit``, and still a ``cursor``.
        """
        response = self._api.pages(
            "GET /v1/keys/roles",
            "roles",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.KeyRole, models.KeyRolePage]", response)

    @overload
    def save(
        self,
        name: str,
        body: models.KeyRoleBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.KeyRole: ...
    @overload
    def save(
        self,
        name: str,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.KeyRoleBody]
    ) -> models.KeyRole: ...
    def save(
        self,
        name: str,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.KeyRole:
        """Create or replace a role.

        A role is a named set of permissions for the keys that you issue to your customers. Keys of the project, and
        in the default project also keys of the account, have it by its name in ``roles``. A change applies from the
        next request of every key that has the role.
        """
        response = self._api.call(
            "PUT /v1/keys/roles/{name}",
            {"name": name},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.KeyRole", response)


class NotaryIndex(Methods):
    """Methods of ``nf.notary.index``."""

    def get(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.ReceiptIndex:
        """Get the indexed fields and the retention of logs.

        Says by which fields receipts can be found with ``field`` and ``value``, and after how many days the texts of
        logs are deleted (0: never). A project without a chain has the defaults.
        """
        response = self._api.call(
            "GET /v1/witness/index",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.ReceiptIndex", response)

    def set(
        self,
        body: Optional[models.ReceiptIndexBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.ReceiptIndexBody]
    ) -> models.ReceiptIndex:
        """Set which values of logs are indexed, and how long logs are stored.

        Fields that are omitted stay as they are. An index covers receipts that are logged from then on.
        ``retain_days`` deletes the texts of older logs, like a redaction, but without a receipt for each.
        """
        response = self._api.call(
            "PUT /v1/witness/index",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ReceiptIndex", response)


class AccountMethods(Methods):
    """The account of the key: credits, platform key and browser sessions."""

    def balance(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.OwnBalance:
        """Get the account's credit balance.

        The credits that pay for the requests of all projects and keys of the account. The balance is always current:
        it includes charges that are written to the ledger later.
        """
        response = self._api.call(
            "GET /v1/meter/balance",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.OwnBalance", response)

    def deduct(
        self,
        amount: int,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.OwnBalance:
        """Deduct credits from the account balance.

        For charges of your own, in addition to those of requests: the same balance pays for both. More than the
        balance is 402 and changes nothing. Recorded in the audit log. For the balances of your customers use tenant
        meters.
        """
        response = self._api.call(
            "POST /v1/meter/deduct",
            body={"amount": amount},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.OwnBalance", response)

    def end_sessions(
        self,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.SessionsEnded:
        """End all browser sessions of the account.

        For a suspected theft: logs everyone out of the console, the caller's own session and people included. Keys
        continue to work; to revoke a leaked platform key, rotate it.
        """
        response = self._api.call(
            "DELETE /v1/sessions",
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.SessionsEnded", response)

    def history(
        self,
        query: Optional[models.MeterOwnHistoryQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.MeterOwnHistoryQuery]
    ) -> Pages[models.LedgerEntry, models.LedgerPage]:
        """List the ledger entries of the account balance, newest first.

        Charges for requests are summed into one entry per operation and hour.
        """
        response = self._api.pages(
            "GET /v1/meter/history",
            "entries",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.LedgerEntry, models.LedgerPage]", response)

    def refill(
        self,
        amount: int,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.OwnBalance:
        """Add credits to the account balance.

        Use it after a payment, or in tests. It is not limited to the tier's monthly credits, and a repeated request
        adds the amount again unless it has an ``Idempotency-Key``. Recorded in the audit log.
        """
        response = self._api.call(
            "POST /v1/meter/refill",
            body={"amount": amount},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.OwnBalance", response)


class Meter(Methods):
    """The meter of one of your customers."""

    def __init__(self, api: Api, id: str) -> None:
        super().__init__(api)
        #: The id of the resource.
        self.id = id

    def alert(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.MeterAlert:
        """Get a meter's alert.

        Returns the meter's own alert only: 404 if it has none, even if the alert of the project applies to it. The
        meter's balance says which one applies.
        """
        response = self._api.call(
            "GET /v1/meter/{meterId}/alert",
            {"meterId": self.id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.MeterAlert", response)

    def balance(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.MeterState:
        """Get a tenant meter's balance. A meter that does not exist has the balance 0; reading creates nothing."""
        response = self._api.call(
            "GET /v1/meter/{meterId}/balance",
            {"meterId": self.id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.MeterState", response)

    def capture(
        self,
        hold_id: str,
        body: Optional[models.CaptureBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.CaptureBody]
    ) -> models.MeterHold:
        """Capture a hold. Deducts the amount as one ledger entry. The rest is released, unless ``final`` is false."""
        response = self._api.call(
            "POST /v1/meter/{meterId}/holds/{hold_id}/capture",
            {"meterId": self.id, "hold_id": hold_id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.MeterHold", response)

    def deduct(
        self,
        amount: int,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.MeterBalance:
        """Deduct from a tenant meter.

        Atomic. A deduction above the available credits changes nothing and returns 402 with the balance. Costs 1
        credit.
        """
        response = self._api.call(
            "POST /v1/meter/{meterId}/deduct",
            {"meterId": self.id},
            body={"amount": amount},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.MeterBalance", response)

    def delete_alert(
        self,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.TermRemoved:
        """Delete a meter's alert.

        The alert of the project, if there is one, applies to the meter again. Without an alert nothing changes and
        the response is the same.
        """
        response = self._api.call(
            "DELETE /v1/meter/{meterId}/alert",
            {"meterId": self.id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.TermRemoved", response)

    def delete_plan(
        self,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.TermRemoved:
        """Delete a meter's refill plan.

        Stops future refills; the balance and past refills stay. Without a plan nothing changes and the response is
        the same.
        """
        response = self._api.call(
            "DELETE /v1/meter/{meterId}/plan",
            {"meterId": self.id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.TermRemoved", response)

    def extend(
        self,
        hold_id: str,
        ttl_seconds: Union[int, str],
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.MeterHold:
        """Extend a hold.

        For work that takes longer than expected: the hold expires ``ttl_seconds`` from now, which can be earlier than
        before. A hold that is no longer open, such as an expired one, is 409.
        """
        response = self._api.call(
            "POST /v1/meter/{meterId}/holds/{hold_id}/extend",
            {"meterId": self.id, "hold_id": hold_id},
            body={"ttl_seconds": ttl_seconds},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.MeterHold", response)

    def get_hold(
        self,
        hold_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.MeterHold:
        """Get a hold.

        Use it to learn what became of a hold after a lost response. A hold expires exactly at ``expires_at``, and is
        404 from 7 days after it was closed.
        """
        response = self._api.call(
            "GET /v1/meter/{meterId}/holds/{hold_id}",
            {"meterId": self.id, "hold_id": hold_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.MeterHold", response)

    def history(
        self,
        query: Optional[models.MeterHistoryQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.MeterHistoryQuery]
    ) -> Pages[models.LedgerEntry, models.LedgerPage]:
        """List a tenant meter's ledger entries, newest first.

        Every change of the balance is an entry, which never changes, and the amounts add up to the balance. A hold
        and its release are not entries; a capture is one, with its ``hold_id``. A meter that does not exist has an
        empty history.
        """
        response = self._api.pages(
            "GET /v1/meter/{meterId}/history",
            "entries",
            {"meterId": self.id},
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.LedgerEntry, models.LedgerPage]", response)

    @overload
    def hold(
        self,
        body: models.HoldBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.MeterHold: ...
    @overload
    def hold(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.HoldBody]
    ) -> models.MeterHold: ...
    def hold(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.MeterHold:
        """Create a hold on a tenant meter.

        A hold reduces the available credits, not the balance. Repeating the request with the same ``hold_id`` and
        terms returns 200 with the current hold. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/meter/{meterId}/holds",
            {"meterId": self.id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.MeterHold", response)

    def holds(
        self,
        query: Optional[models.MeterHoldsListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.MeterHoldsListQuery]
    ) -> Pages[models.MeterHold, models.HoldsPage]:
        """List a meter's holds, newest first.

        Use it to find open holds that reduce the available credits. Closed holds (``captured``, ``released``,
        ``expired``) are stored for 7 days.
        """
        response = self._api.pages(
            "GET /v1/meter/{meterId}/holds",
            "holds",
            {"meterId": self.id},
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.MeterHold, models.HoldsPage]", response)

    def plan(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.MeterPlan:
        """Get a meter's refill plan.

        Use it to show a customer when and by how much the meter is refilled next. A meter without a plan is 404.
        """
        response = self._api.call(
            "GET /v1/meter/{meterId}/plan",
            {"meterId": self.id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.MeterPlan", response)

    def refill(
        self,
        amount: int,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.MeterBalance:
        """Refill a tenant meter. The first refill or reset creates the meter. Costs 1 credit."""
        response = self._api.call(
            "POST /v1/meter/{meterId}/refill",
            {"meterId": self.id},
            body={"amount": amount},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.MeterBalance", response)

    def release(
        self,
        hold_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.MeterHold:
        """Release a hold.

        Makes the held credits available again when the work was not done; what was captured before stays deducted. A
        hold that is released or expired already returns 200, and a captured one 409.
        """
        response = self._api.call(
            "POST /v1/meter/{meterId}/holds/{hold_id}/release",
            {"meterId": self.id, "hold_id": hold_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.MeterHold", response)

    def reset(
        self,
        balance: int,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.MeterBalance:
        """Set a tenant meter's balance. The balance cannot be less than the held credits. Costs 1 credit."""
        response = self._api.call(
            "POST /v1/meter/{meterId}/reset",
            {"meterId": self.id},
            body={"balance": balance},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.MeterBalance", response)

    @overload
    def set_alert(
        self,
        body: models.AlertBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.MeterAlert: ...
    @overload
    def set_alert(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.AlertBody]
    ) -> models.MeterAlert: ...
    def set_alert(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.MeterAlert:
        """Set a meter's alert.

        Sends a webhook when the available credits fall below the threshold, signed and retried like a monitor's
        alert. A meter that does not exist is created with a balance of 0, which costs 1 credit.
        """
        response = self._api.call(
            "PUT /v1/meter/{meterId}/alert",
            {"meterId": self.id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.MeterAlert", response)

    @overload
    def set_plan(
        self,
        body: models.PlanBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.MeterPlan: ...
    @overload
    def set_plan(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.PlanBody]
    ) -> models.MeterPlan: ...
    def set_plan(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.MeterPlan:
        """Set a meter's refill plan.

        Refills at 00:00 UTC. Refills missed during a downtime are applied later: once with the mode ``raise``, each
        of them with ``add``. A meter that does not exist is created with a balance of 0, which costs 1 credit.
        """
        response = self._api.call(
            "PUT /v1/meter/{meterId}/plan",
            {"meterId": self.id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.MeterPlan", response)

    def usage(
        self,
        query: Optional[models.MeterUsageQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.MeterUsageQuery]
    ) -> models.MeterUsage:
        """Get a tenant meter's usage by hour, day or month.

        Buckets are in UTC. Empty buckets are omitted. Default: the last 30 days, by day; maximum: 1,000 buckets.
        """
        response = self._api.call(
            "GET /v1/meter/{meterId}/usage",
            {"meterId": self.id},
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.MeterUsage", response)


class AllMeters(Methods):
    """All meters of the project: their usage and alert."""

    def alert(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.MeterAlert:
        """Get the project's alert, which applies to meters without their own.

        A project without this alert is 404, even if single meters have their own.
        """
        response = self._api.call(
            "GET /v1/meter/alert",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.MeterAlert", response)

    def delete_alert(
        self,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.TermRemoved:
        """Delete the project's alert, which applies to meters without their own.

        Meters with their own alert keep it; all others cause no alert from then on. Without an alert nothing changes
        and the response is the same.
        """
        response = self._api.call(
            "DELETE /v1/meter/alert",
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.TermRemoved", response)

    @overload
    def set_alert(
        self,
        body: models.AlertBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.MeterAlert: ...
    @overload
    def set_alert(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.AlertBody]
    ) -> models.MeterAlert: ...
    def set_alert(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.MeterAlert:
        """Set the project's alert, which applies to meters without their own.

        Sends a webhook when the available credits fall below the threshold, signed and retried like a monitor's
        alert.
        """
        response = self._api.call(
            "PUT /v1/meter/alert",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.MeterAlert", response)

    def usage(
        self,
        query: Optional[models.MeterUsageProjectQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.MeterUsageProjectQuery]
    ) -> models.ProjectUsage:
        """Get the usage of all tenant meters by hour, day or month.

        Use it for reports and charts: the sum over all meters of the project, in UTC buckets. Buckets without entries
        are omitted, and a series has at most 1,000 buckets. Captures count as deducted, and refills of plans as
        refilled.
        """
        response = self._api.call(
            "GET /v1/meter/usage",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.ProjectUsage", response)


class Projects(Methods):
    """Projects. A client works in the project of its key: create one with ``create_key``."""

    @overload
    def create(
        self,
        body: models.ProjectCreateBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.Project: ...
    @overload
    def create(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.ProjectCreateBody]
    ) -> models.Project: ...
    def create(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.Project:
        """Create a project.

        The slug is derived from the name; if it is taken, a number is appended. Not for keys of one project.
        """
        response = self._api.call(
            "POST /v1/projects",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Project", response)

    @overload
    def create_key(
        self,
        id: str,
        body: models.KeyCreateBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.KeyCreated: ...
    @overload
    def create_key(
        self,
        id: str,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.KeyCreateBody]
    ) -> models.KeyCreated: ...
    def create_key(
        self,
        id: str,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.KeyCreated:
        """Create a managed key for one project.

        Only this response contains the secret. A key with the prefix ``sm`` is a Bearer credential of this API and
        can only have scopes that your key has. A key with any other prefix works with verify only and can have any
        scopes. A key that expires can only create keys that expire no later. It works in this project only. For a
        project other than your key's own, the scope ``*`` is required. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/projects/{id}/keys",
            {"id": id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.KeyCreated", response)

    def delete(
        self,
        id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.ProjectDeleted:
        """Delete a project and everything in it.

        Applies immediately, including to the project's keys. The data is removed in the background and cannot be
        restored. The default project can be deleted only if there is another one, which becomes the default; a key of
        the account needs the scope ``*`` for this.
        """
        response = self._api.call(
            "DELETE /v1/projects/{id}",
            {"id": id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ProjectDeleted", response)

    def get(self, id: str, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.Project:
        """Get a project. A key of one project sees only that project; every other id is 404, as is a deleted project."""
        response = self._api.call(
            "GET /v1/projects/{id}",
            {"id": id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Project", response)

    def list(
        self,
        query: Optional[models.ProjectsListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.ProjectsListQuery]
    ) -> Pages[models.ProjectItem, models.ProjectPage]:
        """List projects, newest first. A key of one project lists only that project."""
        response = self._api.pages(
            "GET /v1/projects",
            "projects",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.ProjectItem, models.ProjectPage]", response)

    def overview(
        self,
        id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.ProjectOverview:
        """Get the number of resources in a project. The numbers are at most five minutes old."""
        response = self._api.call(
            "GET /v1/projects/{id}/overview",
            {"id": id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.ProjectOverview", response)

    def update(
        self,
        id: str,
        body: Optional[models.ProjectUpdateBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.ProjectUpdateBody]
    ) -> models.Project:
        """Update the name, description, time zone or review of a project.

        Omitted fields keep their value; ``null`` clears the description. The slug never changes.
        """
        response = self._api.call(
            "PATCH /v1/projects/{id}",
            {"id": id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Project", response)


class KeysMethods(Methods):
    """Managed keys, for parts of your system or for your customers."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: Methods of `nf.keys.roles`.
        self.roles = KeysRoles(api)

    @overload
    def create(
        self,
        body: models.KeyCreateBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.KeyCreated: ...
    @overload
    def create(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.KeyCreateBody]
    ) -> models.KeyCreated: ...
    def create(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.KeyCreated:
        """Create a managed key.

        Only this response contains the secret. A key with the prefix ``sm`` is a Bearer credential of this API and
        can only have scopes that your key has. A key with any other prefix works with verify only and can have any
        scopes. A key that expires can only create keys that expire no later. A key of one project creates keys of
        that project. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/keys",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.KeyCreated", response)

    def get(self, id: str, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.Key:
        """Get a managed key.

        Use it to inspect a key by its id, such as its scopes, limits, expiry and last use. The secret is never
        returned; to check a secret use ``POST /v1/keys/verify``. Costs 1 credit.
        """
        response = self._api.call(
            "GET /v1/keys/{id}",
            {"id": id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Key", response)

    @overload
    def import_(
        self,
        body: models.KeysImportBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.KeysImported: ...
    @overload
    def import_(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.KeysImportBody]
    ) -> models.KeysImported: ...
    def import_(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.KeysImported:
        """Import keys of another service by the hashes of their secrets.

        Your customers keep their secrets: ``POST /v1/keys/verify`` accepts them from the next request. All keys are
        imported, or none. A hash that the account already has returns its key unchanged, free of charge; each new key
        costs 1 credit. Imported keys work with verify only. Hashes are never shown. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/keys/import",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.KeysImported", response)

    def list(
        self,
        query: Optional[models.KeysListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.KeysListQuery]
    ) -> Pages[models.KeyItem, models.KeyPage]:
        """List managed keys, newest first.

        A key of one project lists the keys of that project. With ``environment``, and if keys are large, a page can
        have fewer keys than ``limit``, or none, although ``has_more`` is true. Costs 1 credit.
        """
        response = self._api.pages(
            "GET /v1/keys",
            "keys",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.KeyItem, models.KeyPage]", response)

    def revoke(
        self,
        id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.KeyRevoked:
        """Revoke a managed key.

        Applies from the next request. The record is stored for 30 days. Your key must have the scopes of the revoked
        key. Costs 1 credit.
        """
        response = self._api.call(
            "DELETE /v1/keys/{id}",
            {"id": id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.KeyRevoked", response)

    def revoke_by_owner(
        self,
        owner_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.KeysRevoked:
        """Revoke all keys of an owner.

        Revokes the keys of the owner that your key can see, at most 1000. If ``more`` is true, send the request
        again. If your key lacks a scope of one of them, none is revoked. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/keys/revoke",
            body={"owner_id": owner_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.KeysRevoked", response)

    #: Deprecated: use ``revoke_by_owner``, which is the same.
    revoke_owned = revoke_by_owner

    def rotate(
        self,
        id: str,
        body: Optional[models.KeyRotateBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.KeyRotateBody]
    ) -> models.KeyRotated:
        """Rotate a managed key.

        Creates a copy of the key with a new id and secret. The old key works until the grace period has passed, or
        until its own ``expires_at`` if that is earlier. Your key must have the scopes of the key and must not expire
        before it. For a key of a project other than your key's own, the scope ``*`` is required. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/keys/{id}/rotate",
            {"id": id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.KeyRotated", response)

    def update(
        self,
        id: str,
        body: Optional[models.KeyPatchBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.KeyPatchBody]
    ) -> models.Key:
        """Update a managed key.

        Omitted fields keep their value; null clears a field. The update applies from the next request. The secret
        does not change. Your key must have the scopes of the key before and after the update, and must not expire
        before it. Costs 1 credit.
        """
        response = self._api.call(
            "PATCH /v1/keys/{id}",
            {"id": id},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Key", response)

    #: Deprecated: use ``update``, which is the same.
    patch = update

    def usage(
        self,
        id: str,
        query: Optional[models.KeysUsageQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.KeysUsageQuery]
    ) -> models.KeyUsage:
        """Get the usage of a managed key.

        Counts verifications by outcome, and for a key with the prefix ``sm`` its requests. Usage is stored for 90
        days. After a crash, the last few seconds can be missing. Costs 1 credit.
        """
        response = self._api.call(
            "GET /v1/keys/{id}/usage",
            {"id": id},
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.KeyUsage", response)


class FlagsMethods(Methods):
    """Feature flags."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: Methods of `nf.flags.proposals`.
        self.proposals = FlagsProposals(api)
        #: Methods of `nf.flags.scheduled`.
        self.scheduled = FlagsScheduled(api)

    def definition(
        self,
        flag_key: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.FlagDefinition:
        """Get a flag's definition.

        Use it to edit a flag: it has the rules, variants and the ``version`` for ``if_version`` of a save. Nothing is
        evaluated. Archived flags are returned as well.
        """
        response = self._api.call(
            "GET /v1/gate/{flagKey}/definition",
            {"flagKey": flag_key},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.FlagDefinition", response)

    def delete(
        self,
        flag_key: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.FlagDeleted:
        """Delete a flag.

        From the next request on, the flag does not exist: its switch is 404, and OFREP returns ``FLAG_NOT_FOUND``, so
        that clients use their default. Its usage is deleted too. To be able to undo it, archive the flag instead.
        """
        response = self._api.call(
            "DELETE /v1/gate/{flagKey}",
            {"flagKey": flag_key},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.FlagDeleted", response)

    def evaluate(
        self,
        flag_key: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.FlagEvaluation:
        """Get a flag's switch. Served from memory. Use OFREP to evaluate the flag's rules. Costs 1 credit."""
        response = self._api.call(
            "GET /v1/gate/{flagKey}",
            {"flagKey": flag_key},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.FlagEvaluation", response)

    def evaluations(
        self,
        flag_key: str,
        query: Optional[models.GateEvaluationsQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.GateEvaluationsQuery]
    ) -> models.FlagEvaluations:
        """Get the number of a flag's evaluations.

        Counts individual evaluations and those of checks, by variant and hour or day, for 30 days. Bulk evaluations
        and previews are not counted. After a crash, the last minute can be missing.
        """
        response = self._api.call(
            "GET /v1/gate/{flagKey}/evaluations",
            {"flagKey": flag_key},
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.FlagEvaluations", response)

    @overload
    def preview(
        self,
        flag_key: str,
        body: models.FlagPreviewBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.FlagPreview: ...
    @overload
    def preview(
        self,
        flag_key: str,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.FlagPreviewBody]
    ) -> models.FlagPreview: ...
    def preview(
        self,
        flag_key: str,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Any
    ) -> models.FlagPreview:
        """Preview what a flag serves.

        Evaluates the stored flag, or a change of it that is not saved, for up to 100 contexts. Archived and
        server-only flags are evaluated like others. Counts neither as an evaluation nor as a use. All contexts
        together have the comparisons of one evaluation. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/gate/{flagKey}/preview",
            {"flagKey": flag_key},
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.FlagPreview", response)

    def resolve(
        self,
        key: str,
        context: Optional[Dict[str, Any]],
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.Evaluation:
        """Evaluate a flag for a context.

        For OpenFeature's providers. The key can also be sent as ``X-API-Key``. If the response has no ``value``, the
        caller uses its own default. Errors also have ``key``, ``errorCode`` and ``errorDetails``. Costs 1 credit.
        """
        response = self._api.call(
            "POST /ofrep/v1/evaluate/flags/{key}",
            {"key": key},
            body={"context": context},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Evaluation", response)

    def resolve_all(
        self,
        context: Optional[Dict[str, Any]],
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.Evaluations:
        """Evaluate all flags for a context.

        For OpenFeature's providers in browsers. With the ``ETag`` of an earlier response in ``If-None-Match``, the
        response is 304 while nothing has changed, at the same cost. Errors also have ``errorCode`` and
        ``errorDetails``. Costs 1 credit.
        """
        response = self._api.call(
            "POST /ofrep/v1/evaluate/flags",
            body={"context": context},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Evaluations", response)

    @overload
    def save(
        self,
        body: models.FlagBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.FlagSaved: ...
    @overload
    def save(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.FlagBody]
    ) -> models.FlagSaved: ...
    def save(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.FlagSaved:
        """Create or update a flag.

        The next request uses the change. Omitted fields stay unchanged; null restores the default. A save without
        changes writes nothing. Costs 1 credit per started 4 KiB of changed fields, as JSON, above the first 4 KiB,
        which are free of charge. In a project with ``review``, only ``enabled: false`` alone is saved; other changes
        are proposed.
        """
        response = self._api.call(
            "POST /v1/gate",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.FlagSaved", response)


class LocksMethods(Methods):
    """Distributed locks. ``with_lock`` runs a function while holding one."""

    def extend(
        self,
        key: str,
        token: str,
        ttl: Union[int, str],
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.ExtendedLock:
        """Extend a lock.

        The lock expires ``ttl`` from now, even when that is earlier than before. Unlike acquire, this never takes a
        free lock: 404 if the lock is free, 403 if another token holds it.
        """
        response = self._api.call(
            "POST /v1/latch/{key}/extend",
            {"key": key},
            body={"token": token, "ttl": ttl},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ExtendedLock", response)

    def force_release(
        self,
        key: str,
        fencing_token: int,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.ReleasedLock:
        """Release a lock by force.

        Releases the lock of a holder that hangs, without notifying the holder. The lock passes to the next waiter.
        Resources that check fencing tokens stay protected from late writes of the old holder. 409 if the lock has
        another holder.
        """
        response = self._api.call(
            "POST /v1/latch/{key}/force-release",
            {"key": key},
            body={"fencing_token": fencing_token},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ReleasedLock", response)

    def get(self, key: str, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.LockStatus:
        """Get a lock's state.

        Use it to see whether a lock is held, how long it has left, and how many requests wait. The result may be
        outdated when you read it: only an acquire is reliable. A lock that nobody holds, or that never existed, is
        ``locked: false``.
        """
        response = self._api.call(
            "GET /v1/latch/{key}",
            {"key": key},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.LockStatus", response)

    #: Deprecated: use ``get``, which is the same.
    status = get

    def list(
        self,
        query: Optional[models.LatchListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.LatchListQuery]
    ) -> Pages[models.HeldLock, models.LockPage]:
        """List the held locks, by key.

        Use it to find locks that hang. A shared lock has one row per holder. Free locks are not listed, and tokens
        are never returned.
        """
        response = self._api.pages(
            "GET /v1/latch",
            "locks",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.HeldLock, models.LockPage]", response)

    def release(
        self,
        key: str,
        token: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.ReleasedLock:
        """Release a lock. The lock passes to the next waiter. 404 if the lock is free, 403 if another token holds it."""
        response = self._api.call(
            "POST /v1/latch/{key}/release",
            {"key": key},
            body={"token": token},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ReleasedLock", response)


class MonitorsMethods(Methods):
    """Scheduled checks of URLs, and heartbeats that expect pings."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: Incidents, opened by monitors or manually.
        self.incidents = MonitorIncidents(api)
        #: Notification channels.
        self.channels = MonitorChannels(api)
        #: Maintenance windows, in which alerts of their monitors are suppressed.
        self.maintenance = MonitorMaintenance(api)
        #: Probes, which check monitors from other machines.
        self.probes = MonitorProbes(api)
        #: Status pages, visible to anyone at the `url` of the page.
        self.pages = StatusPages(api)

    def create(
        self,
        body_: Optional[models.MonitorCreateBody] = None,
        /,
        *,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.MonitorCreateBody]
    ) -> models.Monitor:
        """Create a monitor.

        The first check runs within 5 seconds. A heartbeat waits for its first ping. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/pulse",
            body=fields_of(body_, fields),
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Monitor", response)

    def delete(
        self,
        monitor_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.MonitorDeleted:
        """Delete a monitor and its history.

        Stops its checks, resolves its open incident, and removes it from status pages. The history cannot be
        restored: to stop the checks and keep it, set ``active`` to false instead. Costs 1 credit.
        """
        response = self._api.call(
            "DELETE /v1/pulse/{monitorId}",
            {"monitorId": monitor_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.MonitorDeleted", response)

    def get(
        self,
        monitor_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.MonitorStatus:
        """Get a monitor with its current status.

        Reads stored results; to check the target now use ``POST /v1/pulse/{monitorId}/check``. ``failing`` is true
        while the last check failed, but not enough of them in a row to mark the target as down. Costs 1 credit.
        """
        response = self._api.call(
            "GET /v1/pulse/{monitorId}",
            {"monitorId": monitor_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.MonitorStatus", response)

    def history(
        self,
        monitor_id: str,
        query: Optional[models.MonitorsHistoryQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.MonitorsHistoryQuery]
    ) -> Pages[models.MonitorCheck, models.MonitorHistory]:
        """List a monitor's checks, newest first, with its uptime and outages.

        Checks are stored for 30 days, daily counts for 400 days. Costs 1 credit.
        """
        response = self._api.pages(
            "GET /v1/pulse/{monitorId}/history",
            "checks",
            {"monitorId": monitor_id},
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.MonitorCheck, models.MonitorHistory]", response)

    def list(
        self,
        query: Optional[models.MonitorsListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.MonitorsListQuery]
    ) -> Pages[models.MonitorStatus, models.MonitorPage]:
        """List monitors with their current status, newest first.

        Use it for overviews and exports. It reads stored results and checks nothing. ``details=true`` adds uptime and
        hours of the last day to each monitor. Costs 1 credit.
        """
        response = self._api.pages(
            "GET /v1/pulse",
            "monitors",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.MonitorStatus, models.MonitorPage]", response)

    def pings(
        self,
        monitor_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.HeartbeatPings:
        """List the last pings of a heartbeat. Newest first. The last 100 pings are stored. Costs 1 credit."""
        response = self._api.call(
            "GET /v1/pulse/{monitorId}/pings",
            {"monitorId": monitor_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.HeartbeatPings", response)

    def renew_ping_key(
        self,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.PingKey:
        """Create or replace the project's ping key.

        A heartbeat with a slug is pinged at ``/ping/<ping key>/<slug>``. The previous key stops working. Costs 1
        credit.
        """
        response = self._api.call(
            "POST /v1/pulse/ping-key",
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.PingKey", response)

    def update(
        self,
        monitor_id: str,
        body_: Optional[models.MonitorUpdateBody] = None,
        /,
        *,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.MonitorUpdateBody]
    ) -> models.Monitor:
        """Update a monitor.

        Omitted fields stay unchanged. ``active: false`` stops the checks; the status stays. Without the scope ``*``,
        a ``url`` of another origin requires the ``headers`` again (else 409), and the response covers the values of
        headers that the request does not set. Costs 1 credit.
        """
        response = self._api.call(
            "PUT /v1/pulse/{monitorId}",
            {"monitorId": monitor_id},
            body=fields_of(body_, fields),
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Monitor", response)


class Relay(Methods):
    """Signed webhooks: scheduled deliveries, and messages to subscribed endpoints."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: Webhook endpoints.
        self.endpoints = RelayEndpoints(api)
        #: Types of messages, with their schemas.
        self.event_types = RelayEventTypes(api)
        #: Messages to all subscribed endpoints.
        self.messages = RelayMessages(api)
        #: Links by which your customers manage their own endpoints.
        self.portal = RelayPortal(api)
        #: Recurring webhooks, by cron expression.
        self.schedules = RelaySchedules(api)

    def body(
        self,
        relay_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.RelaySentBody:
        """Get the body that a delivery sends.

        Stored until the delivery succeeds or is cancelled; of failed deliveries for 7 days. To endpoints, as long as
        the message or event. Bodies of notifications to chat and on-call services are not returned, since they may
        contain secrets.
        """
        response = self._api.call(
            "GET /v1/relay/{relay_id}/body",
            {"relay_id": relay_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.RelaySentBody", response)

    def cancel(
        self,
        relay_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.RelayCancelled:
        """Cancel a delivery before its first attempt.

        Only while its status is ``scheduled``: after the first attempt the response is 409, although retries may
        follow. Cancelling again returns 200. The credit is not refunded, and no callback is sent.
        """
        response = self._api.call(
            "DELETE /v1/relay/{relay_id}",
            {"relay_id": relay_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelayCancelled", response)

    def get(self, relay_id: str, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.Relay:
        """Get a delivery with its attempts.

        Use it to find out why a webhook did not arrive: ``attempt_log`` has request, response and error of each
        attempt. Values that may be secret are ``[secret]``. Deleted 7 days after the delivery is finished.
        """
        response = self._api.call(
            "GET /v1/relay/{relay_id}",
            {"relay_id": relay_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Relay", response)

    def get_resend(
        self,
        resend_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.RelayResend:
        """Get the progress of a bulk resend.

        ``skipped`` counts matches that were not sent, such as those that another request had resent. A resend without
        credits has the status ``cancelled`` with an ``error``. Stored for 7 days.
        """
        response = self._api.call(
            "GET /v1/relay/resends/{resend_id}",
            {"resend_id": resend_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.RelayResend", response)

    #: Deprecated: use ``get_resend``, which is the same.
    resend_progress = get_resend

    def list(
        self,
        query: Optional[models.RelayListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.RelayListQuery]
    ) -> Pages[models.RelayItem, models.RelayPage]:
        """List deliveries, newest first.

        Alerts and callbacks are deliveries too; ``filter`` separates them. ``status=failed`` lists those without
        retries left. A filtered page may be short or empty and still have a ``cursor``: continue until there is none.
        """
        response = self._api.pages(
            "GET /v1/relay",
            "deliveries",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.RelayItem, models.RelayPage]", response)

    def resend(
        self,
        relay_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.RelayResent:
        """Resend a failed delivery.

        Sends the delivery immediately, under the same ids and with all its retries. The numbers of its attempts
        continue. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/relay/{relay_id}/resend",
            {"relay_id": relay_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelayResent", response)

    def reveal_secret(
        self,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.RelaySecret:
        """Reveal the project's signing secret.

        Returns the secret that receivers verify deliveries with, by any Standard Webhooks library. It is created on
        first use.
        """
        response = self._api.call(
            "POST /v1/relay/secret",
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelaySecret", response)

    #: Deprecated: use ``reveal_secret``, which is the same.
    secret = reveal_secret

    def rotate_secret(
        self,
        body: Optional[models.RelaySecretRotateBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RelaySecretRotateBody]
    ) -> models.RelaySecretRotated:
        """Rotate the project's signing secret.

        For ``grace_hours``, deliveries are also signed with the old secret. At most three secrets are valid. Costs 1
        credit.
        """
        response = self._api.call(
            "POST /v1/relay/secret/rotate",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelaySecretRotated", response)

    @overload
    def schedule(
        self,
        body: models.RelayBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> Union[models.RelayDeduplicated, models.RelayScheduled]: ...
    @overload
    def schedule(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RelayBody]
    ) -> Union[models.RelayDeduplicated, models.RelayScheduled]: ...
    def schedule(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> Union[models.RelayDeduplicated, models.RelayScheduled]:
        """Schedule a signed webhook.

        Sends the payload to ``target_url`` after ``delay``, or at the time ``at``, at least once.
        ``X-Svc-Delivery-Id`` and ``webhook-id`` are the same in every attempt. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/relay",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("Union[models.RelayDeduplicated, models.RelayScheduled]", response)

    def start_resend(
        self,
        body: Optional[models.RelayResendBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.RelayResendBody]
    ) -> Union[models.RelayResendMatched, models.RelayResendStarted]:
        """Resend many failed deliveries.

        Requires ``since``, ``endpoint_id`` or ``relay_ids``. Each delivery costs 1 credit when it is sent.
        """
        response = self._api.call(
            "POST /v1/relay/resend",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("Union[models.RelayResendMatched, models.RelayResendStarted]", response)

    #: Deprecated: use ``start_resend``, which is the same.
    resend_failed = start_resend

    def stats(
        self,
        query: Optional[models.RelayStatsQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.RelayStatsQuery]
    ) -> models.RelayStats:
        """Count deliveries by status and over time. Counts the newest 10,000 deliveries of each status."""
        response = self._api.call(
            "GET /v1/relay/stats",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.RelayStats", response)

    def stop_resend(
        self,
        resend_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.RelayResend:
        """Stop a bulk resend.

        Deliveries that were resent already are still attempted and charged; the others stay failed. Stopping a resend
        that has ended changes nothing.
        """
        response = self._api.call(
            "DELETE /v1/relay/resends/{resend_id}",
            {"resend_id": resend_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.RelayResend", response)


class CatchMethods(Methods):
    """Buckets that receive webhooks."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: Replays of many events.
        self.replays = Replays(api)


class NotaryMethods(Methods):
    """A chain of signed receipts."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: The server as a witness for chains of others.
        self.peer = WitnessPeer(api)
        #: The witnesses of the chain of the project.
        self.witnesses = ChainWitnesses(api)
        #: The storage that receipts are copied to.
        self.storage = Storage(api)
        #: Methods of `nf.notary.index`.
        self.index = NotaryIndex(api)

    def accept_fork(
        self,
        chain_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.ForkAccepted:
        """Continue a chain although others have seen a longer history.

        When the storage or a witness has more receipts than the server, as after a restore, nothing is signed.
        Accepts the fork; those positions are reused. Checkpoints get another origin, and a receipt declares the fork
        in the chain. The operator can do it for any chain.
        """
        response = self._api.call(
            "POST /v1/witness/accept-fork",
            body={"chain_id": chain_id},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ForkAccepted", response)

    @overload
    def consistency_proof(
        self,
        query: models.WitnessProofsConsistencyQuery,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.ConsistencyProof: ...
    @overload
    def consistency_proof(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.WitnessProofsConsistencyQuery]
    ) -> models.ConsistencyProof: ...
    def consistency_proof(
        self,
        query: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Any
    ) -> models.ConsistencyProof:
        """Prove that the chain only grew between two sizes.

        Use it to prove that nothing was removed, changed or reordered since a checkpoint that you stored: ``from`` is
        its size. Without ``to`` the proof leads to the newest checkpoint. A size that the chain does not have is 400.
        """
        response = self._api.call(
            "GET /v1/witness/proofs/consistency",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.ConsistencyProof", response)

    @overload
    def inclusion_proof(
        self,
        query: models.WitnessProofsInclusionQuery,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.InclusionProof: ...
    @overload
    def inclusion_proof(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.WitnessProofsInclusionQuery]
    ) -> models.InclusionProof: ...
    def inclusion_proof(
        self,
        query: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Any
    ) -> models.InclusionProof:
        """Prove that a receipt is in the chain.

        Use it to prove to an auditor that a receipt is part of the chain that a checkpoint covers, without all other
        receipts. Without ``size`` the proof is for the newest checkpoint; a receipt that none covers yet is 409 with
        ``Retry-After: 1``.
        """
        response = self._api.call(
            "GET /v1/witness/proofs/inclusion",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.InclusionProof", response)

    def init(
        self,
        body: Optional[models.ChainInitBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.ChainInitBody]
    ) -> Union[models.ChainExists, models.ChainCreated]:
        """Create the project's chain and its key pair.

        A project has one chain. If it exists, nothing changes and the response is 200 with ``success: false``. Costs
        1 credit.
        """
        response = self._api.call(
            "POST /v1/witness/sys/init",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("Union[models.ChainExists, models.ChainCreated]", response)

    def log(
        self,
        log: Dict[str, Any],
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.Receipt:
        """Log an entry and append its signed receipt to the chain.

        The content hash is computed over ``JSON.stringify(log)``, the text that the response contains as ``log``.
        With ``content_hash`` instead of ``log``, the server never receives the text. A number that JSON parsers
        cannot represent exactly and a duplicate name in an object are rejected with 400. With a storage configured,
        200 means that the copy has been delivered; 202 with the header ``X-Witness-Status: buffered`` means that its
        delivery is pending. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/witness/log",
            body={"log": log},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Receipt", response)

    def public_key(
        self,
        chain_id: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.PublicKey:
        """Get a chain's public key.

        Needs no key, so that recipients of a receipt can verify it without trusting its sender. The key of a chain
        never changes, so it can be cached.
        """
        response = self._api.call(
            "GET /v1/witness/pubkey/{chainId}",
            {"chainId": chain_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.PublicKey", response)

    @overload
    def publish(
        self,
        body: models.TlogBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.Tlog: ...
    @overload
    def publish(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.TlogBody]
    ) -> models.Tlog: ...
    def publish(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.Tlog:
        """Publish the chain as a transparency log, or stop that.

        Anyone can then read the newest checkpoint, and the hashes and timestamps of all receipts, but no logs. A log
        with few possible values can be guessed from its hash.
        """
        response = self._api.call(
            "PUT /v1/witness/tlog",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Tlog", response)

    def verify(
        self,
        receipt: Any,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.ReceiptVerdict:
        """Verify a receipt against the project's chain.

        All three checks always run. The response to an invalid receipt, including a malformed one, is 200 with
        ``valid: false``.
        """
        response = self._api.call(
            "POST /v1/witness/verify",
            body={"receipt": receipt},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ReceiptVerdict", response)


class People(Methods):
    """People of the account and their roles."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: Identities of people at OpenID Connect providers.
        self.identities = PeopleIdentities(api)
        #: Invitations of people.
        self.invitation = PeopleInvitation(api)
        #: Browser sessions of people.
        self.sessions = PeopleSessions(api)

    @overload
    def create(
        self,
        body: models.PersonCreateBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.PersonInvited: ...
    @overload
    def create(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.PersonCreateBody]
    ) -> models.PersonInvited: ...
    def create(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Any
    ) -> models.PersonInvited:
        """Invite a person.

        The invitation is sent by e-mail, or returned as ``invitation_url`` if the server sends none. At most 20
        invitations a day for an account, and 3 for an address.
        """
        response = self._api.call(
            "POST /v1/people",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.PersonInvited", response)

    def delete(
        self,
        person_id: str,
        query: Optional[models.PeopleDeleteQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.PeopleDeleteQuery]
    ) -> models.PersonDeleted:
        """Delete a person.

        Ends their sessions. Keys that they created continue to work, unless ``revoke_keys`` is true.
        """
        response = self._api.call(
            "DELETE /v1/people/{person_id}",
            {"person_id": person_id},
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.PersonDeleted", response)

    def get(self, person_id: str, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.Person:
        """Get a person.

        Also of people who are disabled or have not yet accepted their invitation (``status``). A deleted person is
        404, although the audit log still names them.
        """
        response = self._api.call(
            "GET /v1/people/{person_id}",
            {"person_id": person_id},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Person", response)

    def list(
        self,
        query: Optional[models.PeopleListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.PeopleListQuery]
    ) -> Pages[models.Person, models.PeoplePage]:
        """List people, newest first.

        Disabled and invited people are included: ``status`` and ``role`` select. ``POST /v1/people`` invites.
        """
        response = self._api.pages(
            "GET /v1/people",
            "people",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.Person, models.PeoplePage]", response)

    def roles(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.Roles:
        """List roles and what each may do. The least role of each operation, in the order of their names."""
        response = self._api.call(
            "GET /v1/people/roles",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Roles", response)

    def update(
        self,
        person_id: str,
        body: Any,
        query: Optional[models.PeopleUpdateQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.PeopleUpdateQuery]
    ) -> models.Person:
        """Change a person.

        A change takes effect with the next request of the person and ends their open streams. Nobody changes a person
        above them, or their own role. The last active owner stays one. Keys that the person has created continue to
        work, and a warning lists them, unless ``revoke_keys`` is true.
        """
        response = self._api.call(
            "PATCH /v1/people/{person_id}",
            {"person_id": person_id},
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.Person", response)


class Audit(Methods):
    """The audit log of the account, or of the project of the key."""

    def export(
        self,
        query: Optional[models.AuditExportQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.AuditExportQuery]
    ) -> str:
        """Download the audit log, oldest first. At most 1,000,000 entries; one export at a time per account."""
        response = self._api.call(
            "GET /v1/audit/export",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("str", response)

    def get(
        self,
        sequence: Union[str, int],
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.AuditEntry:
        """Get an audit log entry.

        Use it to link to an entry. Entries of other accounts are 404. A key of one project, or without the scope
        ``*``, cannot read entries of other projects either.
        """
        response = self._api.call(
            "GET /v1/audit/{sequence}",
            {"sequence": sequence},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.AuditEntry", response)

    def list(
        self,
        query: Optional[models.AuditListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.AuditListQuery]
    ) -> Pages[models.AuditEntry, models.AuditPage]:
        """List audit log entries, newest first.

        A key of one project lists the changes in that project. Each entry was stored in the transaction of its
        change. A page ends after 5,000 scanned entries, even if few of them match the filters, and after 256 KiB of
        ``before`` and ``after``: continue with its ``cursor``.
        """
        response = self._api.pages(
            "GET /v1/audit",
            "entries",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.AuditEntry, models.AuditPage]", response)


class Admin(Methods):
    """The operator's API and the test clock."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: All accounts, for the operator.
        self.accounts = AdminAccounts(api)
        #: The audit log of all accounts and of the server, for the operator.
        self.audit = AdminAudit(api)
        #: The server's backups, for the operator.
        self.backups = AdminBackups(api)
        #: Settings of the server in its database, for the operator.
        self.settings = AdminSettings(api)

    def advance_clock(
        self,
        advance_ms: Union[int, str],
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.ClockAdvanced:
        """Advance the test clock. Returns after all work that became due has run, in the order of its due times."""
        response = self._api.call(
            "POST /v1/admin/clock",
            body={"advance_ms": advance_ms},
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.ClockAdvanced", response)

    def clock(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.ClockAdvanced:
        """Get the time of the test clock.

        Also while the clock is being advanced, for example in the receiver of a webhook.
        """
        response = self._api.call(
            "GET /v1/admin/clock",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.ClockAdvanced", response)

    def create_login_link(
        self,
        body: Optional[models.LoginLinkBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.LoginLinkBody]
    ) -> models.LoginLink:
        """Create a login link. The link opens one session of the calling key or person, once."""
        response = self._api.call(
            "POST /v1/admin/login-links",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("models.LoginLink", response)

    def history(
        self,
        query: Optional[models.AdminHistoryReadQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.AdminHistoryReadQuery]
    ) -> models.ServerHistory:
        """Get the measurements of the last hours.

        Returns what the server measured of itself, and when it was not healthy. One row per minute is stored for
        seven days.
        """
        response = self._api.call(
            "GET /v1/admin/history",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.ServerHistory", response)

    def options(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.ServerOptions:
        """List the server's options. Returns each option with its value and source, like ``ninefold config print``."""
        response = self._api.call(
            "GET /v1/admin/options",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.ServerOptions", response)

    def status(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.ServerStatus:
        """Get the status of the server.

        Use it for dashboards and support requests: sizes, free disk space, mail, jobs and load of this node. For
        health checks use ``/readyz``, and for monitoring ``/metrics``.
        """
        response = self._api.call(
            "GET /v1/admin/status",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.ServerStatus", response)


class NinefoldMethods(Methods):
    """A client."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: All meters of the project: their usage and alert.
        self.all_meters = AllMeters(api)
        #: Projects. A client works in the project of its key: create one with ``create_key``.
        self.projects = Projects(api)
        #: Signed webhooks: scheduled deliveries, and messages to subscribed endpoints.
        self.relay = Relay(api)
        #: People of the account and their roles.
        self.people = People(api)
        #: The audit log of the account, or of the project of the key.
        self.audit = Audit(api)
        #: The operator's API and the test clock.
        self.admin = Admin(api)

    def check(
        self,
        body: Optional[models.CheckBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.CheckBody]
    ) -> Union[models.CheckAnswer, models.CheckAnswers]:
        """Authorize a customer's request.

        Checks key, scopes, addresses, rate limits, uses, credits and flags in one transaction. Unless all of them
        pass, nothing is taken. The response to every well-formed request is 200; ``status`` is the status for your
        response to the customer. With an ``Idempotency-Key``, only allowed responses are stored. With ``checks``, up
        to 20 checks run one after another, for 1 credit each, and the response is ``{results}``; 402 before the first
        if the credits do not suffice for all. An error in one of them is an error of the request: then none has an
        effect. Costs 1 credit.
        """
        response = self._api.call(
            "POST /v1/check",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
            idempotency_key=idempotency_key,
        )
        return cast("Union[models.CheckAnswer, models.CheckAnswers]", response)

    def meters(
        self,
        query: Optional[models.MeterListQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.MeterListQuery]
    ) -> Pages[models.MeterItem, models.MeterPage]:
        """List tenant meters by id.

        Use it to find meters or to page through all of them. ``available`` excludes the credits that open holds
        reserve. Meters that were never refilled or reset do not exist and are not listed.
        """
        response = self._api.pages(
            "GET /v1/meter",
            "meters",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("Pages[models.MeterItem, models.MeterPage]", response)

    def open_api(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.OpenApiDocument:
        """Read this API's OpenAPI document.

        For generating clients and for tools: OpenAPI 3.1 of this version of the server, as in the reference at
        ``/docs``. Large; send ``If-None-Match`` to download it only after a change.
        """
        response = self._api.call(
            "GET /openapi.json",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.OpenApiDocument", response)

    def overview(
        self,
        query: Optional[models.OverviewReadQuery] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.OverviewReadQuery]
    ) -> models.Overview:
        """Get a summary of all areas. One object per area that the key can read. Counts end at 10000."""
        response = self._api.call(
            "GET /v1/overview",
            query=fields_of(query, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Overview", response)

    def ping(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> models.Pong:
        """Check that the server responds.

        Says that the process accepts requests, and nothing about the database: use ``/readyz`` for load balancers and
        health checks.
        """
        response = self._api.call(
            "GET /v1/ping",
            timeout=timeout,
            retries=retries,
        )
        return cast("models.Pong", response)

    @overload
    def signup(
        self,
        body: models.SignupBody,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.SignedUp: ...
    @overload
    def signup(
        self,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Unpack[models.SignupBody]
    ) -> models.SignedUp: ...
    def signup(
        self,
        body: Any = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        **fields: Any
    ) -> models.SignedUp:
        """Sign up.

        Works only where the operator has opened signup. At most 10 attempts an hour per client address (IPv6: per /64
        network), and 1,000 new accounts an hour over all addresses.
        """
        response = self._api.call(
            "POST /v1/signup",
            body=fields_of(body, fields),
            timeout=timeout,
            retries=retries,
        )
        return cast("models.SignedUp", response)
