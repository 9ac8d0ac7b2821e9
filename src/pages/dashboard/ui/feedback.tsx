import type { ComponentChildren } from "preact";
import type { Failure, Request } from "../core/api.ts";
import { curlOf } from "../core/curl.ts";
import type { List, Resource } from "../core/resource.ts";
import { Button, CopyButton } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";

/** What went wrong, with the request's id, by which the server's log has it. */
export function Problem({ failure, retry }: { failure: Failure; retry?: (() => void) | undefined }) {
  return (
    <div class="problem" role="alert">
      <Icon name="alert" />
      <div>
        <p>{failure.message}</p>
        {failure.requestId === null ? null : (
          <p class="quiet small">
            request <code>{failure.requestId}</code>
          </p>
        )}
      </div>
      {retry === undefined ? null : (
        <Button icon="reload" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** Nothing there yet: what it is for, and the line that makes the first one. */
export function Empty(props: {
  icon: IconName;
  title: string;
  children?: ComponentChildren;
  request?: Request;
}) {
  const { icon, title, children, request } = props;
  const line = request === undefined ? null : curlOf(request);
  return (
    <div class="empty">
      <span class="medallion">
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      <div class="quiet">{children}</div>
      {line === null ? null : (
        <div class="curl">
          <pre>{line}</pre>
          <CopyButton text={line} what="Line" />
        </div>
      )}
    </div>
  );
}

/** Grey bars where text will be. */
export function Loading({ rows = 4 }: { rows?: number }) {
  return (
    <div class="loading" role="status">
      <span class="unseen">Loading</span>
      {Array.from({ length: rows }, (_, at) => (
        <span key={at} class="bone" />
      ))}
    </div>
  );
}

const NOT_FOUND = 404;

/** Draws what was read; before that, or where that failed, what is to be said instead. */
export function Loaded<T>(props: {
  of: Resource<T>;
  /** Instead of an error, where the server has no such thing. */
  missing?: ComponentChildren;
  children: (data: T) => ComponentChildren;
}) {
  const { of, missing, children } = props;
  const { data, failure, reload } = of;
  if (failure !== null && failure.status === NOT_FOUND && missing !== undefined) return <>{missing}</>;
  return (
    <>
      {failure === null ? null : <Problem failure={failure} retry={reload} />}
      {data === null ? failure === null ? <Loading /> : null : children(data)}
    </>
  );
}

/** The way to the next page of a list. */
export function More<T>({ of }: { of: List<T> }) {
  const { more } = of;
  if (more === null) return null;
  return (
    <div class="more">
      <Button onClick={more}>{of.isPartial ? "Search older ones" : "Show more"}</Button>
    </div>
  );
}
