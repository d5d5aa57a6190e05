{
  description = "Apply manifests with kubectl, and prune objects removed from them";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";

  outputs =
    { self, nixpkgs }:
    let
      archives = {
        aarch64-darwin = {
          url = "https://github.com/kubectl-applyset/kubectl-applyset/releases/download/vVERSION/kubectl-applyset-vVERSION-darwin-arm64.tar.gz";
          sha256 = "0000000000000000000000000000000000000000000000000000000000000000";
        };
        x86_64-darwin = {
          url = "https://github.com/kubectl-applyset/kubectl-applyset/releases/download/vVERSION/kubectl-applyset-vVERSION-darwin-amd64.tar.gz";
          sha256 = "0000000000000000000000000000000000000000000000000000000000000000";
        };
        aarch64-linux = {
          url = "https://github.com/kubectl-applyset/kubectl-applyset/releases/download/vVERSION/kubectl-applyset-vVERSION-linux-arm64.tar.gz";
          sha256 = "0000000000000000000000000000000000000000000000000000000000000000";
        };
        x86_64-linux = {
          url = "https://github.com/kubectl-applyset/kubectl-applyset/releases/download/vVERSION/kubectl-applyset-vVERSION-linux-amd64.tar.gz";
          sha256 = "0000000000000000000000000000000000000000000000000000000000000000";
        };
      };
      package =
        system: archive:
        let
          pkgs = nixpkgs.legacyPackages.${system};
        in
        pkgs.stdenvNoCC.mkDerivation {
          pname = "kubectl-applyset";
          version = "VERSION";
          src = pkgs.fetchurl archive;
          sourceRoot = ".";
          # The program is static, or needs only the libraries of macOS.
          dontFixup = true;
          installPhase = ''
            runHook preInstall
            install -D -m 755 -t $out/bin kubectl-applyset completions/kubectl_complete-applyset
            install -D -m 644 completions/kubectl-applyset.bash $out/share/bash-completion/completions/kubectl-applyset
            install -D -m 644 -t $out/share/zsh/site-functions completions/_kubectl-applyset
            install -D -m 644 -t $out/share/fish/vendor_completions.d completions/kubectl-applyset.fish
            install -D -m 644 -t $out/share/man/man1 man/*
            install -D -m 644 -t $out/share/doc/kubectl-applyset LICENSE sbom.cdx.json
            runHook postInstall
          '';
          meta = {
            description = "Apply manifests with kubectl, and prune objects removed from them";
            homepage = "https://github.com/kubectl-applyset/kubectl-applyset";
            license = pkgs.lib.licenses.asl20;
            mainProgram = "kubectl-applyset";
            platforms = builtins.attrNames archives;
            sourceProvenance = [ pkgs.lib.sourceTypes.binaryNativeCode ];
          };
        };
    in
    {
      packages = builtins.mapAttrs (system: archive: {
        default = package system archive;
      }) archives;
    };
}
