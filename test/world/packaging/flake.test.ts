/**
 * The flake, evaluated by the real Nix against a nixpkgs of stand-ins: each
 * returns what it was given, so that the test can read it. Nothing is built or
 * fetched.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { serviceSettings, unitSettings } from "../../../src/systemd/Unit.ts"

const root = join(import.meta.dirname, "../../..")
const json = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8"))

const hasNix = spawnSync("nix-instantiate", ["--version"]).status === 0
if (!hasNix) console.warn("SKIPPED: the flake (no nix-instantiate on this machine)")

const store = mkdtempSync(join(tmpdir(), "agentd-nix-"))
afterAll(() => rmSync(store, { recursive: true, force: true }))

const STAND_INS = `
  let
    lib = {
      genAttrs = names: f: builtins.listToAttrs (map (name: { inherit name; value = f name; }) names);
      getExe = package: "/exe/" + package.name;
      makeBinPath = packages: builtins.concatStringsSep ":" (map (package: "/bin-of/" + package.name) packages);
      mkEnableOption = description: { option = description; };
      mkOption = option: option;
      mkIf = condition: value: if condition then value else { };
      literalExpression = text: text;
      types = { package = "package"; listOf = type: "list of " + type; };
      licenses.mit = "MIT";
      platforms.linux = [ "linux" ];
    };
    pkgs = system: {
      inherit lib;
      stdenv.hostPlatform.system = system;
      nodejs_24 = { name = "node"; };
      git = { name = "git"; };
      procps = { name = "procps"; };
      makeWrapper = { name = "makeWrapper"; };
      nixfmt = { name = "nixfmt"; };
      mkShell = arguments: arguments;
      buildNpmPackage =
        let make = arguments: arguments // { name = "agentd"; overrideAttrs = change: make (arguments // change arguments); };
        in make;
      importNpmLock = { __functor = _: arguments: arguments; npmConfigHook = "hook"; };
    };
    flake = import ./flake.nix;
    outputs = flake.outputs {
      self = outputs // { outPath = "/source"; };
      nixpkgs = {
        inherit lib;
        legacyPackages = lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] pkgs;
      };
    };
    module = enable: outputs.nixosModules.default {
      config.services.agentd = { inherit enable; package = { name = "agentd"; }; path = [ "bash" ]; };
      inherit lib;
      pkgs = pkgs "x86_64-linux";
    };
  in
`

const nix = (args: ReadonlyArray<string>): string => {
  const { stderr, stdout, status } = spawnSync("nix-instantiate", args, {
    cwd: root,
    encoding: "utf8",
    env: {
      ...process.env,
      NIX_STORE_DIR: join(store, "store"),
      NIX_STATE_DIR: join(store, "state"),
      NIX_CONF_DIR: join(store, "conf"),
      NIX_LOG_DIR: join(store, "log")
    }
  })
  assert.strictEqual(status, 0, stderr)
  return stdout
}
const evaluate = (expression: string) =>
  JSON.parse(nix(["--eval", "--strict", "--json", "--expr", `${STAND_INS} ${expression}`]))

describe.skipIf(!hasNix)("flake.nix", () => {
  it("parses", () => {
    assert.include(nix(["--parse", "flake.nix"]), "nixosModules")
  })

  for (const system of ["x86_64-linux", "aarch64-linux"]) {
    it(`has package, shell and formatter for ${system}`, () => {
      const found = evaluate(`{
        package = { inherit (outputs.packages.${system}.default) pname version npmBuildScript npmConfigHook src; };
        shell = outputs.devShells.${system}.default;
        formatter = outputs.formatter.${system};
      }`)
      const { name, scripts, version } = json("package.json")
      assert.deepStrictEqual(found, {
        package: { pname: name, version, npmBuildScript: "bundle", npmConfigHook: "hook", src: "/source" },
        shell: { packages: [{ name: "node" }, { name: "git" }] },
        formatter: { name: "nixfmt" }
      })
      assert.property(scripts, "bundle")
    })
  }

  for (const system of ["x86_64-linux", "aarch64-linux"]) {
    it(`checks the package for ${system} by the tests that CI runs`, () => {
      const found = evaluate(
        `{ inherit (outputs.checks.${system}.default) pname npmBuildScript doCheck checkPhase nativeCheckInputs; }`
      )
      const { checkPhase, nativeCheckInputs, ...rest } = found
      assert.deepStrictEqual(rest, { pname: "agentd", npmBuildScript: "bundle", doCheck: true })
      assert.include(checkPhase, "npm test")
      assert.deepStrictEqual(nativeCheckInputs, [{ name: "git" }, { name: "procps" }])
      assert.include(readFileSync(join(root, ".ci/run"), "utf8"), "npm test")
    })
  }

  it("installs the bundle behind nixpkgs' own Node", () => {
    const phase: string = evaluate("outputs.packages.x86_64-linux.default.installPhase")
    assert.include(phase, "cp -r dist docs package.json $out/lib/agentd/")
    assert.include(phase, "makeWrapper /exe/node $out/bin/agentd")
    assert.include(phase, "--add-flags $out/lib/agentd/dist/quick.cjs")
  })

  it("gives every locked package its address, and leaves out the optional ones", () => {
    const { package: manifest, packageLock } = evaluate("outputs.packages.x86_64-linux.default.npmDeps")
    assert.deepStrictEqual(Object.keys(manifest).includes("optionalDependencies"), false)
    const { "": own, ...packages } = packageLock.packages
    assert.notProperty(own, "optionalDependencies")

    for (const one of [manifest, own]) {
      assert.property(one.devDependencies, "effect")
      assert.notProperty(one.devDependencies, "@effect/tsgo")
    }
    const optional = Object.keys(json("package.json").optionalDependencies).map((name) => `node_modules/${name}`)
    const locked = Object.keys(json("package-lock.json").packages).filter(
      (path) => path !== "" && !optional.includes(path) && !path.startsWith("node_modules/@effect/tsgo")
    )
    assert.deepStrictEqual(Object.keys(packages).toSorted(), locked.toSorted())
    const { version } = packages["node_modules/@effect/platform-node"]
    assert.strictEqual(
      packages["node_modules/@effect/platform-node"].resolved,
      `https://registry.npmjs.org/@effect/platform-node/-/platform-node-${version}.tgz`
    )
    for (const [path, entry] of Object.entries<{ readonly resolved: string; readonly integrity?: string }>(packages)) {
      assert.match(entry.resolved, /^https:\/\/registry\.npmjs\.org\/(@[^/]+\/)?[^/@]+\/-\/[^/]+-\d[^/]*\.tgz$/, path)
      assert.isString(entry.integrity, path)
    }
  })

  it("its module runs the service that `agentd start` runs", () => {
    const config = evaluate("(module true).config")
    const service = config.systemd.user.services.agentd
    assert.deepStrictEqual(service.serviceConfig, { ExecStart: "/exe/agentd up", ...serviceSettings })
    assert.deepStrictEqual(service.unitConfig, unitSettings)
    assert.deepStrictEqual(service.wantedBy, ["default.target"])
    assert.deepStrictEqual(service.path, ["bash"])
  })

  it("its module does nothing unless it is enabled, and runs this flake's package by default", () => {
    assert.deepStrictEqual(evaluate("(module false).config"), {})
    const options = evaluate(
      "let o = (module true).options.services.agentd; in { inherit (o) enable; names = builtins.attrNames o; package = o.package.default.pname; }"
    )
    assert.deepStrictEqual(options.names, ["enable", "package", "path"])
    assert.strictEqual(options.package, "agentd")
  })
})
