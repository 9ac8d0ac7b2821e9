import type { Answers, Api, ListOf, PageQuery } from "../api.ts";
import type { KeyCreateBody, ProjectCreateBody, ProjectUpdateBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Projects. Which one a client works in is said by its key: make one with {@link Projects.createKey}. */
export class Projects {
  constructor(private readonly api: Api) {}

  /** Makes a project. */
  create(body: ProjectCreateBody, options?: ChangeOptions): Answers<"projects.create"> {
    return this.api.call("projects.create", { body }, options);
  }

  /** Projects, newest first. */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"projects.list", "projects"> {
    return this.api.list("projects.list", "projects", { query }, options);
  }

  /** One project. */
  get(id: string, options?: RequestOptions): Answers<"projects.get"> {
    return this.api.call("projects.get", { params: { id } }, options);
  }

  /** Changes name or description; what is left out stays, null clears the description. */
  update(id: string, body: ProjectUpdateBody, options?: ChangeOptions): Answers<"projects.update"> {
    return this.api.call("projects.update", { params: { id }, body }, options);
  }

  /** Deletes a project and everything in it, at once and for good. */
  delete(id: string, options?: ChangeOptions): Answers<"projects.delete"> {
    return this.api.call("projects.delete", { params: { id } }, options);
  }

  /** Counts what is in a project. At most five minutes old. */
  overview(id: string, options?: RequestOptions): Answers<"projects.overview"> {
    return this.api.call("projects.overview", { params: { id } }, options);
  }

  /** A key that works in this project only. Its secret is in this answer and never again. */
  createKey(id: string, body: KeyCreateBody, options?: ChangeOptions): Answers<"projects.keys.create"> {
    return this.api.call("projects.keys.create", { params: { id }, body }, options);
  }
}
