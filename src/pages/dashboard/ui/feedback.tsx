import type { ComponentChildren } from "preact";
import type { Failure, Request } from "../core/api.ts";
import { curlOf } from "../core/curl.ts";
import type { List } from "../core/lists.ts";
import type { Resource } from "../core/resource.ts";
import { Button, CopyButton } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";

/** An error with the request's id, which the server's log contains. */
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

/** An empty state: what the page is for, and a command that creates the first item. */
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
          <CopyButton text={line} what="Command" />
        </div>
      )}
    </div>
  );
}

/** A placeholder while data is loading. */
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

/** Renders data; before that the loading or error state. */
export function Loaded<T>(props: {
  of: Resource<T>;
  /** Rendered instead of an error when the resource does not exist. */
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

/** The pages of a list; nothing for a list of one page. */
export function Pager<T>({ of: list }: { of: List<T> }) {
  const { next, previous, from, data, isPartial } = list;
  if (next === null && previous === null) return null;
  const count = data?.length ?? 0;
  return (
    <nav class="more" aria-label="Pages of the list">
      <Button disabled={previous === null} onClick={previous ?? undefined}>
        Previous
      </Button>
      <span class="quiet">{isPartial || count === 0 ? null : `${from + 1} to ${from + count}`}</span>
      <Button disabled={next === null} onClick={next ?? undefined}>
        {isPartial ? "Search older items" : "Next"}
      </Button>
    </nav>
  );
}
