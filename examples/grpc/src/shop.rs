//! What `tonic-prost-build` makes of `proto/shop.proto`, shortened: the example needs neither a build script nor `protoc`.

/// A payment to be made.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CreatePayment {
    #[prost(string, tag = "1")]
    pub amount: ::prost::alloc::string::String,
}

/// A payment.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Payment {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub amount: ::prost::alloc::string::String,
}

/// How many payments were taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Imported {
    #[prost(uint32, tag = "1")]
    pub payments: u32,
}

pub mod payments_client {
    use tonic::codegen::http::uri::PathAndQuery;
    use tonic::codegen::{Body, Bytes, StdError};
    use tonic::{IntoRequest, IntoStreamingRequest, Response, Status};
    use tonic_prost::ProstCodec;

    #[derive(Debug, Clone)]
    pub struct PaymentsClient<T> {
        inner: tonic::client::Grpc<T>,
    }

    impl<T> PaymentsClient<T>
    where
        T: tonic::client::GrpcService<tonic::body::Body>,
        T::Error: Into<StdError>,
        T::ResponseBody: Body<Data = Bytes> + Send + 'static,
        <T::ResponseBody as Body>::Error: Into<StdError> + Send,
    {
        pub fn new(inner: T) -> Self {
            Self { inner: tonic::client::Grpc::new(inner) }
        }

        pub async fn create(
            &mut self,
            request: impl IntoRequest<super::CreatePayment>,
        ) -> Result<Response<super::Payment>, Status> {
            self.ready().await?;
            let path = PathAndQuery::from_static("/shop.Payments/Create");
            self.inner.unary(request.into_request(), path, ProstCodec::default()).await
        }

        pub async fn import(
            &mut self,
            request: impl IntoStreamingRequest<Message = super::CreatePayment>,
        ) -> Result<Response<super::Imported>, Status> {
            self.ready().await?;
            let path = PathAndQuery::from_static("/shop.Payments/Import");
            self.inner.client_streaming(request.into_streaming_request(), path, ProstCodec::default()).await
        }

        async fn ready(&mut self) -> Result<(), Status> {
            let ready = self.inner.ready().await;
            ready.map_err(|error| Status::unknown(format!("Service was not ready: {}", error.into())))
        }
    }
}

pub mod payments_server {
    use tonic::codegen::{Arc, Body, BoxFuture, Context, Poll, Service, StdError, async_trait, http};
    use tonic::{Request, Response, Status, Streaming};
    use tonic_prost::ProstCodec;

    #[async_trait]
    pub trait Payments: Send + Sync + 'static {
        async fn create(
            &self,
            request: Request<super::CreatePayment>,
        ) -> Result<Response<super::Payment>, Status>;

        async fn import(
            &self,
            request: Request<Streaming<super::CreatePayment>>,
        ) -> Result<Response<super::Imported>, Status>;
    }

    #[derive(Debug)]
    pub struct PaymentsServer<T> {
        inner: Arc<T>,
    }

    impl<T> PaymentsServer<T> {
        pub fn new(inner: T) -> Self {
            Self { inner: Arc::new(inner) }
        }
    }

    impl<T> Clone for PaymentsServer<T> {
        fn clone(&self) -> Self {
            Self { inner: Arc::clone(&self.inner) }
        }
    }

    impl<T, B> Service<http::Request<B>> for PaymentsServer<T>
    where
        T: Payments,
        B: Body + Send + 'static,
        B::Error: Into<StdError> + Send + 'static,
    {
        type Response = http::Response<tonic::body::Body>;
        type Error = std::convert::Infallible;
        type Future = BoxFuture<Self::Response, Self::Error>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: http::Request<B>) -> Self::Future {
            let inner = Arc::clone(&self.inner);
            match request.uri().path() {
                "/shop.Payments/Create" => Box::pin(async move {
                    Ok(tonic::server::Grpc::new(ProstCodec::default()).unary(Create(inner), request).await)
                }),
                "/shop.Payments/Import" => Box::pin(async move {
                    let mut grpc = tonic::server::Grpc::new(ProstCodec::default());
                    Ok(grpc.client_streaming(Import(inner), request).await)
                }),
                _ => Box::pin(async { Ok(Status::unimplemented("").into_http()) }),
            }
        }
    }

    struct Create<T>(Arc<T>);

    impl<T: Payments> tonic::server::UnaryService<super::CreatePayment> for Create<T> {
        type Response = super::Payment;
        type Future = BoxFuture<Response<Self::Response>, Status>;

        fn call(&mut self, request: Request<super::CreatePayment>) -> Self::Future {
            let inner = Arc::clone(&self.0);
            Box::pin(async move { inner.create(request).await })
        }
    }

    struct Import<T>(Arc<T>);

    impl<T: Payments> tonic::server::ClientStreamingService<super::CreatePayment> for Import<T> {
        type Response = super::Imported;
        type Future = BoxFuture<Response<Self::Response>, Status>;

        fn call(&mut self, request: Request<Streaming<super::CreatePayment>>) -> Self::Future {
            let inner = Arc::clone(&self.0);
            Box::pin(async move { inner.import(request).await })
        }
    }

    impl<T> tonic::server::NamedService for PaymentsServer<T> {
        const NAME: &'static str = "shop.Payments";
    }
}
