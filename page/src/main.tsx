import { render } from "preact";
import { App } from "./app";
import type { View } from "./app";
import { PlanView } from "./views/plan";

const views: readonly View[] = [{ id: "plan", name: "Plan", Body: PlanView }];
render(<App views={views} />, document.getElementById("app")!);
