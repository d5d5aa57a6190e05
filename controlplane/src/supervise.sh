# Runs the programs of a Kubernetes release until standard input comes to its
# end, or on SIGTERM, SIGINT or SIGHUP; then ends them and removes their
# directory. The environment says where everything is: etcd, kube_apiserver,
# kube_controller_manager, kubectl (programs), data_dir, and the ports etcd_port,
# etcd_peer_port and server_port.
set -u

end() {
    kill -KILL "$input" "$etcd_pid" "$server_pid" "$controllers_pid" 2>/dev/null
    wait
    rm -rf "$data_dir"
    exit 0
}

# A job in the background has no standard input unless it is given one.
exec 3<&0
cat <&3 >/dev/null &
input=$!

"$etcd" \
    --name controlplane \
    --data-dir "$data_dir/etcd" \
    --unsafe-no-fsync \
    --log-level warn \
    --listen-client-urls "http://127.0.0.1:$etcd_port" \
    --advertise-client-urls "http://127.0.0.1:$etcd_port" \
    --listen-peer-urls "http://127.0.0.1:$etcd_peer_port" \
    --initial-advertise-peer-urls "http://127.0.0.1:$etcd_peer_port" \
    --initial-cluster "controlplane=http://127.0.0.1:$etcd_peer_port" \
    >"$data_dir/etcd.log" 2>&1 &
etcd_pid=$!

# It makes its own certificate, and its key serves for service accounts too.
"$kube_apiserver" \
    --etcd-servers "http://127.0.0.1:$etcd_port" \
    --bind-address 127.0.0.1 \
    --advertise-address 127.0.0.1 \
    --endpoint-reconciler-type none \
    --secure-port "$server_port" \
    --cert-dir "$data_dir/certificates" \
    --token-auth-file "$data_dir/tokens.csv" \
    --authorization-mode RBAC \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$data_dir/certificates/apiserver.key" \
    --service-account-signing-key-file "$data_dir/certificates/apiserver.key" \
    --disable-admission-plugins ServiceAccount \
    --service-cluster-ip-range 10.0.0.0/16 \
    --allow-privileged=true \
    >"$data_dir/kube-apiserver.log" 2>&1 &
server_pid=$!

# It gives up where the API server does not answer within seconds.
(
    until "$kubectl" --kubeconfig "$data_dir/admin.kubeconfig" \
        --cache-dir "$data_dir/cache" get --raw /readyz; do
        sleep 0.1
    done
    exec "$kube_controller_manager" \
        --kubeconfig "$data_dir/admin.kubeconfig" \
        --controllers namespace-controller,garbage-collector-controller \
        --leader-elect=false \
        --secure-port 0 \
        --kube-api-qps 1000 \
        --kube-api-burst 2000
) >"$data_dir/kube-controller-manager.log" 2>&1 &
controllers_pid=$!

trap end TERM INT HUP
wait "$input"
end
