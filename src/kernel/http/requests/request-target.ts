/** The path of an absolute URL, as it was sent. */
export function pathOf(url: string): string {
  const target = targetOf(url);
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}

/** Path and query of an absolute URL, as they were sent. */
export function targetOf(url: string): string {
  // With a Host that makes no URL, the server hands out the target alone.
  if (url.startsWith("/")) return url;
  const authority = url.indexOf("://") + 3;
  const slash = url.indexOf("/", authority);
  return slash < 0 ? "/" : url.slice(slash);
}
