import { VNode } from "preact";

declare const htm: { bind(h: unknown): (strings: TemplateStringsArray, ...values: any[]) => VNode<any> };
export default htm;
