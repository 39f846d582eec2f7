{
  description = "agentd: a background daemon that supervises AI coding agents";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      forEachSystem =
        f:
        nixpkgs.lib.genAttrs [
          "x86_64-linux"
          "aarch64-linux"
        ] (system: f nixpkgs.legacyPackages.${system});

      # The Node that npm brings is linked for other distributions, and nixpkgs has
      # one; the Effect diagnostics (@effect/tsgo) are for development. Both are optional.
      readJSON = path: builtins.fromJSON (builtins.readFile path);
      manifest = readJSON ./package.json;
      checker = "@effect/tsgo";
      withoutOptional =
        package:
        removeAttrs package [ "optionalDependencies" ]
        // {
          devDependencies = removeAttrs package.devDependencies [ checker ];
        };

      # The lock file names no registry, and importNpmLock fetches only what has an address.
      withAddress =
        path: package:
        let
          name = package.name or (builtins.head (builtins.match ".*node_modules/(.+)" path));
          file = "${baseNameOf name}-${package.version}.tgz";
        in
        if path == "" then
          withoutOptional package
        else
          package // { resolved = "https://registry.npmjs.org/${name}/-/${file}"; };

      lock =
        let
          whole = readJSON ./package-lock.json;
          optional = manifest.optionalDependencies // whole.packages."node_modules/${checker}".optionalDependencies;
          unused = map (name: "node_modules/${name}") ([ checker ] ++ builtins.attrNames optional);
          packages = removeAttrs whole.packages unused;
        in
        whole // { packages = builtins.mapAttrs withAddress packages; };

      agentd =
        pkgs:
        pkgs.buildNpmPackage {
          pname = manifest.name;
          inherit (manifest) version;
          src = self;
          nodejs = pkgs.nodejs_24;

          npmDeps = pkgs.importNpmLock {
            npmRoot = self;
            package = withoutOptional manifest;
            packageLock = lock;
          };
          npmConfigHook = pkgs.importNpmLock.npmConfigHook;
          npmBuildScript = "bundle";

          # The bundle needs no node_modules. Node is named by its path: agents keep the PATH they had.
          nativeBuildInputs = [ pkgs.makeWrapper ];
          installPhase = ''
            runHook preInstall
            mkdir -p $out/lib/agentd
            cp -r dist docs package.json $out/lib/agentd/
            makeWrapper ${pkgs.lib.getExe pkgs.nodejs_24} $out/bin/agentd \
              --add-flags $out/lib/agentd/dist/quick.cjs \
              --suffix PATH : ${pkgs.lib.makeBinPath [ pkgs.git ]}
            runHook postInstall
          '';

          meta = {
            inherit (manifest) description;
            license = pkgs.lib.licenses.mit;
            mainProgram = "agentd";
            platforms = pkgs.lib.platforms.linux;
          };
        };
    in
    {
      packages = forEachSystem (pkgs: {
        default = agentd pkgs;
      });

      # All that CI runs, on the package's own sources and dependencies; what needs more than
      # a build may have (systemd, namespaces) is skipped there, and says so. The manifest and
      # the lock file are the project's own again: for the install they named store paths.
      checks = forEachSystem (pkgs: {
        default = (agentd pkgs).overrideAttrs (_: {
          doCheck = true;
          nativeCheckInputs = [
            pkgs.git
            pkgs.procps
          ];
          checkPhase = ''
            runHook preCheck
            cp .package.json.orig package.json
            cp .package-lock.json.orig package-lock.json
            npm test
            runHook postCheck
          '';
        });
      });

      devShells = forEachSystem (pkgs: {
        default = pkgs.mkShell {
          packages = [
            pkgs.nodejs_24
            pkgs.git
          ];
        };
      });

      formatter = forEachSystem (pkgs: pkgs.nixfmt);

      # One daemon for each user who logs in; `users.users.<name>.linger = true`
      # starts it at boot and keeps it after the last logout.
      nixosModules.default =
        {
          config,
          lib,
          pkgs,
          ...
        }:
        let
          cfg = config.services.agentd;
        in
        {
          options.services.agentd = {
            enable = lib.mkEnableOption "agentd, a daemon that supervises AI coding agents, for every user";
            package = lib.mkOption {
              type = lib.types.package;
              default = self.packages.${pkgs.stdenv.hostPlatform.system}.default;
              defaultText = lib.literalExpression "agentd.packages.\${system}.default";
              description = "The agentd that runs.";
            };
            path = lib.mkOption {
              type = lib.types.listOf lib.types.package;
              default = [ ];
              example = lib.literalExpression "[ pkgs.claude-code pkgs.nodejs pkgs.bash ]";
              description = "What agents find on PATH, beside git.";
            };
          };

          config = lib.mkIf cfg.enable {
            environment.systemPackages = [ cfg.package ];
            systemd.user.services.agentd = {
              description = "agentd: supervises AI coding agents";
              wantedBy = [ "default.target" ];
              path = cfg.path;
              # The same as those of the unit that `agentd start` makes; a test compares them.
              unitConfig = {
                StartLimitIntervalSec = "600";
                StartLimitBurst = "10";
              };
              serviceConfig = {
                ExecStart = "${lib.getExe cfg.package} up";
                Type = "notify";
                NotifyAccess = "all";
                WatchdogSec = "60";
                TimeoutStartSec = "120";
                Restart = "on-failure";
                RestartSec = "5";
                SuccessExitStatus = "130 143";
                RestartPreventExitStatus = "78";
                KillMode = "mixed";
                TimeoutStopSec = "90";
                OOMPolicy = "continue";
              };
            };
          };
        };
    };
}
