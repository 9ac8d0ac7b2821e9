import type { Answers, Api, ListOf, PageQuery } from "../api.ts";
import type { KeyCreateBody, ProjectCreateBody, ProjectUpdateBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Projects. A client works in the project of its key: create one with {@link Projects.createKey}. */
export class Projects {
  constructor(private readonly api: Api) {}

  /** Creates a project. */
  create(body: ProjectCreateBody, options?: ChangeOptions): Answers<"projects.create"> {
    return this.api.call("projects.create", { body }, options);
  }

  /** Lists projects, newest first. */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"projects.list", "projects"> {
    return this.api.list("projects.list", "projects", { query }, options);
  }

  /** Returns a project. */
  get(id: string, options?: RequestOptions): Answers<"projects.get"> {
    return this.api.call("projects.get", { params: { id } }, options);
  }

  /** Updates name or description. Omitted fields stay unchanged; null clears the description. */
  update(id: string, body: ProjectUpdateBody, options?: ChangeOptions): Answers<"projects.update"> {
    return this.api.call("projects.update", { params: { id }, body }, options);
  }

  /** Deletes a project and all of its data, immediately and permanently. */
  delete(id: string, options?: ChangeOptions): Answers<"projects.delete"> {
    return this.api.call("projects.delete", { params: { id } }, options);
  }

  /** Counts the resources of a project. The counts are at most five minutes old. */
  overview(id: string, options?: RequestOptions): Answers<"projects.overview"> {
    return this.api.call("projects.overview", { params: { id } }, options);
  }

  /** Creates a key that works in this project only. Its secret is shown in this response only. */
  createKey(id: string, body: KeyCreateBody, options?: ChangeOptions): Answers<"projects.keys.create"> {
    return this.api.call("projects.keys.create", { params: { id }, body }, options);
  }
}
